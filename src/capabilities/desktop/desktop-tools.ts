import type { Tool, ToolResult } from "../../kernel/index.ts";
import { tool } from "../tools/tool.ts";
import type { DesktopSession } from "./desktop-session.ts";
import { imagePart, stateParts } from "./desktop-state.ts";

const place = { type: "integer", minimum: 0, description: "In pixels of the screen" } as const;
const button = { enum: ["left", "middle", "right"] } as const;

/**
 * Creates the tools with which an agent uses a desktop. Each action returns the windows that are open afterwards. The tools run one at a
 * time, because they share the screen.
 *
 * @example
 * ```ts
 * import { Agent } from "reeve";
 * import { DesktopSession, desktopTools } from "reeve/desktop";
 *
 * const desktop = new DesktopSession({ display: ":99" });
 * const agent = new Agent({
 *   name: "operator",
 *   model: "anthropic/claude-sonnet-5",
 *   tools: desktopTools(desktop),
 * });
 * await agent.invoke("Open the calculator's menu");
 * await desktop.close();
 * ```
 */
export function desktopTools(desktop: DesktopSession): readonly Tool[] {
  const shared = { concurrency: "sequential", timeoutMs: 60_000, inChildren: "never" } as const;
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
        "List the windows on the screen and their content, with positions to click at if the programs report them.",
      inputSchema: { type: "object", properties: {}, additionalProperties: false } as const,
      ...looking,
      execute: () => seen({ useAccessibility: true }),
    }),
    tool({
      name: "desktop_screenshot",
      description:
        "Take a screenshot of the screen or of one window. In a screenshot of the whole screen, a pixel is a position to click at.",
      inputSchema: {
        type: "object",
        properties: { window: { type: "integer", description: "The number of a window" } },
        additionalProperties: false,
      } as const,
      ...looking,
      execute: async ({ window }): Promise<ToolResult> => {
        const area = window === undefined ? undefined : await desktop.window(window);
        const picture = await desktop.screenshot(area);
        const where =
          area && `The top left corner is at ${Math.max(0, area.x)},${Math.max(0, area.y)} of the screen.`;
        const text = where === undefined ? [] : [{ type: "text", text: where } as const];
        return {
          output: { type: "content", parts: [...text, imagePart(picture.toString("base64"))] },
          isError: false,
        };
      },
    }),
    tool({
      name: "desktop_focus",
      description: "Bring a window to the front and give it the keyboard focus.",
      inputSchema: {
        type: "object",
        properties: { window: { type: "integer", description: "The number of a window" } },
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
      description: "Move the pointer, for example to show a tooltip.",
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
      description: "Click at a position of the screen. A count of 2 is a double click.",
      inputSchema: {
        type: "object",
        properties: {
          x: place,
          y: place,
          button,
          count: { type: "integer", minimum: 1, maximum: 3 },
          holding: { type: "string", description: "Keys to hold during the click, such as Control" },
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
      description: "Drag from one position of the screen to another.",
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
      description: "Turn the mouse wheel at a position of the screen.",
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
      description: "Type a text into the window with the keyboard focus. A line break is Enter.",
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
      description: "Press a key, such as Enter, Escape, PageDown, F5 or Control+Shift+T.",
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
