import { invalidOption, is, type OptionKind, type Tool } from "../../../kernel/index.ts";

/** Selects tools by name or by a predicate. */
export type ToolSelection = readonly string[] | ((tool: Tool) => boolean);

/**
 * Option kind of the option `tools` of middleware. Other values, such as a single name, throw, because they would
 * select no tool, and nothing would be checked.
 */
export const toolSelection: OptionKind<never> = is.checkedBy((value: unknown, option, owner) => {
  if (typeof value === "function") return;
  if (Array.isArray(value) && value.every((each) => typeof each === "string")) return;
  const expected = "a list of names of tools, or a function of a tool";
  throw invalidOption(owner, option, value, expected, 'use ["write"], or leave the option out for all tools');
});

export function selects(selection: ToolSelection): (tool: Tool) => boolean {
  if (typeof selection === "function") return selection;
  const names = new Set(selection);
  return ({ name }) => names.has(name);
}
