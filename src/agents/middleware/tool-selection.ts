import type { Tool } from "../../kernel/index.ts";

/** Some of an agent's tools: by name, or by what they say of themselves. */
export type ToolSelection = readonly string[] | ((tool: Tool) => boolean);

export function selects(selection: ToolSelection): (tool: Tool) => boolean {
  if (typeof selection === "function") return selection;
  const names = new Set(selection);
  return ({ name }) => names.has(name);
}
