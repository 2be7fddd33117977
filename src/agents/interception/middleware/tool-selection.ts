import type { Tool } from "../../../kernel/index.ts";

/** Selects tools by name or by a predicate. */
export type ToolSelection = readonly string[] | ((tool: Tool) => boolean);

export function selects(selection: ToolSelection): (tool: Tool) => boolean {
  if (typeof selection === "function") return selection;
  const names = new Set(selection);
  return ({ name }) => names.has(name);
}
