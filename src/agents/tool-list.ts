import type { Tool } from "../kernel/index.ts";

/** A list of tools, or a function that returns the current list. */
export type ToolList<Context = unknown> =
  | readonly Tool<unknown, Context>[]
  | (() => readonly Tool<unknown, Context>[]);

const none: readonly Tool[] = [];

/** The tools in a list at this moment. */
export function toolsIn(list: ToolList = none): readonly Tool[] {
  return typeof list === "function" ? list() : list;
}
