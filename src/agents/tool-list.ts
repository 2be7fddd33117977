import type { Tool } from "../kernel/index.ts";

/** Tools that may come and go. */
export type ToolList = readonly Tool[] | (() => readonly Tool[]);

const none: readonly Tool[] = [];

/** Those there are now. */
export function toolsIn(list: ToolList = none): readonly Tool[] {
  return typeof list === "function" ? list() : list;
}
