import type { Tool, ToolResult } from "../../kernel/index.ts";
import { tool } from "../tools/tool.ts";
import { stateParts, type BrowserSession } from "./browser-session.ts";

const reference = {
  type: "string",
  description: "The [ref=...] of the element in the latest view of the page",
} as const;

/**
 * Creates the tools with which an agent uses a browser. Each action returns what is on the page afterwards. The tools run one at a time,
 * because they share the page.
 *
 * @example
 * ```ts
 * import { Agent } from "reeve";
 * import { BrowserSession, browserTools } from "reeve/browser";
 *
 * const browser = new BrowserSession({ allow: (url) => url.hostname === "example.com" });
 * const agent = new Agent({
 *   name: "surfer",
 *   model: "anthropic/claude-sonnet-5",
 *   tools: browserTools(browser),
 * });
 * await agent.invoke("What is on example.com?");
 * await browser.close();
 * ```
 */
export function browserTools(browser: BrowserSession): readonly Tool[] {
  const shared = { concurrency: "sequential", timeoutMs: 60_000, inChildren: "never" } as const;
  const acting = { ...shared, risk: "high", destructive: true } as const;
  // Opening a page changes nothing, but the URL itself can carry data out.
  const opening = { ...shared, risk: "high", destructive: false } as const;
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
      description: "Open a URL in the browser and return what is on the page.",
      inputSchema: {
        type: "object",
        properties: { url: { type: "string" }, newTab: { type: "boolean" } },
        required: ["url"],
        additionalProperties: false,
      } as const,
      ...opening,
      execute: async ({ url, newTab = false }) => {
        await browser.open(url, { newTab });
        return afterwards();
      },
    }),
    tool({
      name: "browser_look",
      description: "Return what is on the page in front. Each element has a reference for the other tools.",
      inputSchema: { type: "object", properties: {}, additionalProperties: false } as const,
      ...looking,
      execute: afterwards,
    }),
    tool({
      name: "browser_screenshot",
      description: "Take a screenshot of the page in front.",
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
      description: "Click an element.",
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
      description: "Replace the text of a field. Set `submit` to press Enter afterwards.",
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
      description: "Select an option of a list, by its value or its label.",
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
      description: "Press a key on the page, such as Enter, Escape, PageDown or Control+A.",
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
      description: "Go back to the previous page.",
      inputSchema: { type: "object", properties: {}, additionalProperties: false } as const,
      ...looking,
      execute: async () => {
        await browser.page().goBack({ waitUntil: "domcontentloaded" });
        return afterwards();
      },
    }),
    tool({
      name: "browser_tab",
      description: "Bring a tab to the front, or close it.",
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
