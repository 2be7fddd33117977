import type { Tool, ToolResult } from "../../kernel/index.ts";
import { tool } from "../tools/tool.ts";
import { stateParts, type BrowserSession } from "./browser-session.ts";

const reference = {
  type: "string",
  description: "The element's [ref=...] from the last look at the page",
} as const;

/** What an agent can do with a browser. After each action it is told what is on the page then. One at a time: they share the page. */
export function browserTools(browser: BrowserSession): readonly Tool[] {
  const shared = { concurrency: "sequential", timeoutMs: 60_000 } as const;
  const acting = { ...shared, risk: "high", destructive: true } as const;
  const looking = { ...shared, risk: "safe", destructive: false } as const;

  async function afterwards(): Promise<string> {
    const { tabs } = await browser.getState({ useScreenshot: false, useAccessibility: false });
    const front = tabs.find(({ active }) => active);
    if (front === undefined) return "No tab is open.";
    return `${front.title} <${front.url}>\n${await browser.look()}`;
  }

  return [
    tool({
      name: "browser_open",
      description: "Opens an address in the browser and shows what is on the page.",
      inputSchema: {
        type: "object",
        properties: { url: { type: "string" }, newTab: { type: "boolean" } },
        required: ["url"],
        additionalProperties: false,
      } as const,
      ...looking,
      execute: async ({ url, newTab = false }) => {
        await browser.open(url, { newTab });
        return afterwards();
      },
    }),
    tool({
      name: "browser_look",
      description: "Shows what is on the page in front, each element with a reference for other tools.",
      inputSchema: { type: "object", properties: {}, additionalProperties: false } as const,
      ...looking,
      execute: afterwards,
    }),
    tool({
      name: "browser_screenshot",
      description: "A picture of the page in front.",
      inputSchema: { type: "object", properties: {}, additionalProperties: false } as const,
      ...looking,
      execute: async (): Promise<ToolResult> => {
        browser.page();
        const parts = stateParts(await browser.getState({ useScreenshot: true, useAccessibility: false }));
        return { output: { type: "content", parts }, isError: false };
      },
    }),
    tool({
      name: "browser_click",
      description: "Clicks an element.",
      inputSchema: {
        type: "object",
        properties: { ref: reference },
        required: ["ref"],
        additionalProperties: false,
      } as const,
      ...acting,
      execute: async ({ ref }) => {
        await browser.page().getByRef(ref).click();
        return afterwards();
      },
    }),
    tool({
      name: "browser_type",
      description: "Replaces the text of a field; `submit` presses Enter after it.",
      inputSchema: {
        type: "object",
        properties: { ref: reference, text: { type: "string" }, submit: { type: "boolean" } },
        required: ["ref", "text"],
        additionalProperties: false,
      } as const,
      ...acting,
      execute: async ({ ref, text, submit = false }) => {
        const field = browser.page().getByRef(ref);
        await field.fill(text);
        if (submit) await field.press("Enter");
        return afterwards();
      },
    }),
    tool({
      name: "browser_select",
      description: "Chooses an option of a list, by its value or its label.",
      inputSchema: {
        type: "object",
        properties: { ref: reference, option: { type: "string" } },
        required: ["ref", "option"],
        additionalProperties: false,
      } as const,
      ...acting,
      execute: async ({ ref, option }) => {
        await browser.page().getByRef(ref).selectOption(option);
        return afterwards();
      },
    }),
    tool({
      name: "browser_press",
      description: "Presses a key on the page, such as Enter, Escape, PageDown or Control+A.",
      inputSchema: {
        type: "object",
        properties: { key: { type: "string" } },
        required: ["key"],
        additionalProperties: false,
      } as const,
      ...acting,
      execute: async ({ key }) => {
        await browser.page().keyboard.press(key);
        return afterwards();
      },
    }),
    tool({
      name: "browser_back",
      description: "Goes back to the page before.",
      inputSchema: { type: "object", properties: {}, additionalProperties: false } as const,
      ...looking,
      execute: async () => {
        await browser.page().goBack({ waitUntil: "domcontentloaded" });
        return afterwards();
      },
    }),
    tool({
      name: "browser_tab",
      description: "Brings a tab to the front, or closes it.",
      inputSchema: {
        type: "object",
        properties: { tab: { type: "integer" }, action: { enum: ["show", "close"] } },
        required: ["tab", "action"],
        additionalProperties: false,
      } as const,
      ...looking,
      execute: async ({ tab, action }) => {
        await (action === "show" ? browser.showTab(tab) : browser.closeTab(tab));
        return afterwards();
      },
    }),
  ] as readonly Tool[];
}
