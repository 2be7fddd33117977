import { type Tool, is, optionTable, type OptionKinds } from "../../kernel/index.ts";
import { editTool } from "./edit.ts";
import { findTool } from "./find.ts";
import { grepTool } from "./grep.ts";
import { lsTool } from "./ls.ts";
import { readTool } from "./read.ts";
import { writeTool } from "./write.ts";

/** Options of `fileTools()`. */
export interface FileToolsOptions {
  /** Folder to which the tools are confined. */
  readonly root: string;
  /** Further folders that the tools may use. Calls name them by absolute paths. Default: none. */
  readonly folders?: readonly string[];
  /** Whether to create only the tools that read: `read`, `ls`, `find` and `grep`. Default: `false`. */
  readonly readOnly?: boolean;
}

const knownOptions = optionTable({
  root: is.text(),
  folders: is.list({ of: is.text() }),
  readOnly: is.boolean({ default: false }),
} satisfies OptionKinds<FileToolsOptions>);

/**
 * Creates the file tools in a fixed order: `read`, `ls`, `find`, `grep`, `write`, `edit`.
 *
 * @example
 * ```ts
 * import { Agent } from "reeve";
 * import { fileTools } from "reeve/tools";
 *
 * const agent = new Agent({
 *   name: "editor",
 *   model: "anthropic/claude-sonnet-5",
 *   tools: fileTools({ root: "./workspace" }),
 * });
 * ```
 */
export function fileTools(options: FileToolsOptions): readonly Tool[] {
  const { root, folders = [], readOnly } = knownOptions.read("fileTools()", options);
  const where = { root, folders };
  const readers = [readTool(where), lsTool(where), findTool(where), grepTool(where)];
  return readOnly ? readers : [...readers, writeTool(where), editTool(where)];
}
