import type { Tool } from "../../kernel/index.ts";
import { editTool } from "./edit.ts";
import { findTool } from "./find.ts";
import { grepTool } from "./grep.ts";
import { lsTool } from "./ls.ts";
import { readTool } from "./read.ts";
import { writeTool } from "./write.ts";

export interface FileToolsOptions {
  /** The folder they stay in. */
  readonly root: string;
  /** Only those that look: read, ls, find, grep. */
  readonly readOnly?: boolean;
}

/** The tools for files, in a stable order. */
export function fileTools({ root, readOnly = false }: FileToolsOptions): readonly Tool[] {
  const looking = [readTool({ root }), lsTool({ root }), findTool({ root }), grepTool({ root })];
  return readOnly ? looking : [...looking, writeTool({ root }), editTool({ root })];
}
