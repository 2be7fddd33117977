import { Fault, type Tool, is, optionTable, type OptionKinds } from "../../kernel/index.ts";
import { FileRoot, furtherFolders } from "../files/file-root.ts";
import { matchingFiles } from "../files/matching-files.ts";
import { textResult } from "./tool-result.ts";
import { durationKind, tool } from "./tool.ts";

/** Options of `findTool()`. */
export interface FindToolOptions {
  /** Folder to which the tool is confined. */
  readonly root: string;
  /** Further folders that the tool may use. Calls name them by absolute paths. Default: none. */
  readonly folders?: readonly string[];
  /** Maximum number of files in a result. Default: 500. */
  readonly maxResults?: number;
  /** Maximum duration of a call, in milliseconds. `null` sets no limit. Default: 20_000. */
  readonly timeoutMs?: number | null;
}

const input = {
  type: "object",
  properties: {
    pattern: {
      type: "string",
      description: "A glob such as src/**/*.ts. A plain name matches only in the folder itself",
    },
    path: {
      type: "string",
      description: "The folder to search, relative to the workspace root. Default: the root",
    },
    ignored: { type: "boolean", description: "Include files that .gitignore excludes, and node_modules" },
  },
  required: ["pattern"],
  additionalProperties: false,
} as const;

const knownOptions = optionTable({
  root: is.text(),
  folders: is.list({ of: is.text() }),
  maxResults: is.number({ from: 0, default: 500 }),
  timeoutMs: durationKind(20_000),
} satisfies OptionKinds<FindToolOptions>);

/**
 * Creates the tool `find`, which finds files by a glob.
 *
 * @example
 * ```ts
 * import { findTool } from "reeve/tools";
 *
 * const find = findTool({ root: "./workspace", maxResults: 100 });
 * ```
 */
export function findTool(options: FindToolOptions): Tool {
  const { root: path, folders = [], maxResults, timeoutMs } = knownOptions.read("findTool()", options);
  const base = new FileRoot(path, { folders });
  return tool({
    name: "find",
    description: `Find at most ${maxResults} files of the workspace by a glob. Files that .gitignore excludes are left out unless ignored is set.${furtherFolders(folders)}`,
    inputSchema: input,
    timeoutMs,
    execute: async ({ pattern, path: from = ".", ignored = false }, { signal, folder }) => {
      const root = await base.in(folder);
      const found = await matchingFiles(root, { pattern, path: from, ignored, signal });
      const shown: string[] = [];
      for (const file of found.slice(0, maxResults)) if (await isInside(root, file)) shown.push(file);
      const left = Math.max(0, found.length - maxResults);
      const more = left > 0 ? [`[${left} more: use a narrower pattern]`] : [];
      return textResult([...shown, ...more].join("\n") || `[no file matches ${pattern}]`, {
        pattern,
        path: from,
        found: found.length,
      });
    },
  });
}

/**
 * R1: checks a found file again, because during the search a folder may have been replaced by a link to another
 * place.
 */
async function isInside(root: FileRoot, file: string): Promise<boolean> {
  try {
    const { folder } = await root.place(file);
    await folder.close();
    return true;
  } catch (error) {
    if (Fault.is(error)) return false;
    throw error;
  }
}
