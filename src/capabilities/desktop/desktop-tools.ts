import type { Tool, ToolResult } from "../../kernel/index.ts";
import { tool } from "../tools/tool.ts";
import type { DesktopSession } from "./desktop-session.ts";
import { imagePart, stateParts } from "./desktop-state.ts";

const place = { type: "integer", minimum: 0, description: "In pixels of the screen" } as const;
const button = { enum: ["left", "middle", "right"] } as const;

/** What an agent can do with a desktop. After each action it is told which windows there are then. One at a time: they share the screen. */
export function desktopTools(desktop: DesktopSession): readonly Tool[] {
  const shared = { concurrency: "sequential", timeoutMs: 60_000 } as const;
  const acting = { ...shared, risk: "high", destructive: true } as const;
  const looking = { ...shared, risk: "safe", destructive: false } as const;

  async function seen(also: { readonly useAccessibility: boolean }): Promise<ToolResult> {
    const parts = stateParts(await desktop.getState({ useScreenshot: false, ...also }));
    return { output: { type: "content", parts }, isError: false };
  }
  const afterwards = (): Promise<ToolResult> => seen({ useAccessibility: false });

  return [
    tool({
      name: "desktop_look",
      description:
        "Lists the windows on the screen and what is in them, with places to click at where programs tell them.",
      inputSchema: { type: "object", properties: {}, additionalProperties: false } as const,
      ...looking,
      execute: () => seen({ useAccessibility: true }),
    }),
    tool({
      name: "desktop_screenshot",
      description:
        "A picture of the screen, or of one window. Of the whole screen: a pixel of it is a pixel to click at.",
      inputSchema: {
        type: "object",
        properties: { window: { type: "integer", description: "A window's number" } },
        additionalProperties: false,
      } as const,
      ...looking,
      execute: async ({ window }): Promise<ToolResult> => {
        const area = window === undefined ? undefined : await desktop.window(window);
        const picture = await desktop.screenshot(area);
        const where = area && `Its corner is at ${Math.max(0, area.x)},${Math.max(0, area.y)} of the screen.`;
        const text = where === undefined ? [] : [{ type: "text", text: where } as const];
        return {
          output: { type: "content", parts: [...text, imagePart(picture.toString("base64"))] },
          isError: false,
        };
      },
    }),
    tool({
      name: "desktop_focus",
      description: "Brings a window to the front and gives it the keyboard.",
      inputSchema: {
        type: "object",
        properties: { window: { type: "integer", description: "A window's number" } },
        required: ["window"],
        additionalProperties: false,
      } as const,
      ...looking,
      execute: async ({ window }) => {
        await desktop.focus(window);
        return afterwards();
      },
    }),
    tool({
      name: "desktop_move",
      description: "Moves the pointer, to see what shows when it is there.",
      inputSchema: {
        type: "object",
        properties: { x: place, y: place },
        required: ["x", "y"],
        additionalProperties: false,
      } as const,
      ...looking,
      execute: async ({ x, y }) => {
        await desktop.move({ x, y });
        return afterwards();
      },
    }),
    tool({
      name: "desktop_click",
      description: "Clicks at a place of the screen; count 2 is a double click.",
      inputSchema: {
        type: "object",
        properties: {
          x: place,
          y: place,
          button,
          count: { type: "integer", minimum: 1, maximum: 3 },
          holding: { type: "string", description: "Keys that are down meanwhile, such as Control" },
        },
        required: ["x", "y"],
        additionalProperties: false,
      } as const,
      ...acting,
      execute: async ({ x, y, ...how }) => {
        await desktop.click({ x, y }, how);
        return afterwards();
      },
    }),
    tool({
      name: "desktop_drag",
      description: "Drags from one place of the screen to another.",
      inputSchema: {
        type: "object",
        properties: { fromX: place, fromY: place, toX: place, toY: place, button },
        required: ["fromX", "fromY", "toX", "toY"],
        additionalProperties: false,
      } as const,
      ...acting,
      execute: async ({ fromX, fromY, toX, toY, ...how }) => {
        await desktop.drag({ x: fromX, y: fromY }, { x: toX, y: toY }, how);
        return afterwards();
      },
    }),
    tool({
      name: "desktop_scroll",
      description: "Turns the wheel at a place of the screen.",
      inputSchema: {
        type: "object",
        properties: {
          x: place,
          y: place,
          direction: { enum: ["up", "down", "left", "right"] },
          notches: { type: "integer", minimum: 1, maximum: 50 },
        },
        required: ["x", "y", "direction"],
        additionalProperties: false,
      } as const,
      ...looking,
      execute: async ({ x, y, direction, notches }) => {
        await desktop.scroll({ x, y }, direction, notches);
        return afterwards();
      },
    }),
    tool({
      name: "desktop_type",
      description: "Types a text into the window that has the keyboard; a line end is Enter.",
      inputSchema: {
        type: "object",
        properties: { text: { type: "string", maxLength: 10_000 } },
        required: ["text"],
        additionalProperties: false,
      } as const,
      ...acting,
      execute: async ({ text }, { signal }) => {
        await desktop.type(text, { signal });
        return afterwards();
      },
    }),
    tool({
      name: "desktop_press",
      description: "Presses a key, such as Enter, Escape, PageDown, F5 or Control+Shift+T.",
      inputSchema: {
        type: "object",
        properties: { key: { type: "string" } },
        required: ["key"],
        additionalProperties: false,
      } as const,
      ...acting,
      execute: async ({ key }) => {
        await desktop.press(key);
        return afterwards();
      },
    }),
  ] as readonly Tool[];
}
