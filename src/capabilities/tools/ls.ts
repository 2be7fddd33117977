import type { Dirent } from "node:fs";
import { lstat, readdir, readlink } from "node:fs/promises";
import { type Tool, is, optionTable, type OptionKinds } from "../../kernel/index.ts";
import { codeOf } from "../files/error-code.ts";
import { fileFault, FileRoot, furtherFolders } from "../files/file-root.ts";
import type { OpenFolder } from "../files/open-folder.ts";
import { textResult } from "./tool-result.ts";
import { tool } from "./tool.ts";

/** Options of `lsTool()`. */
export interface LsToolOptions {
  /** Folder to which the tool is confined. */
  readonly root: string;
  /** Further folders that the tool may use. Calls name them by absolute paths. Default: none. */
  readonly folders?: readonly string[];
  /** Maximum number of entries in a result. Default: 1_000. */
  readonly maxEntries?: number;
}

const input = {
  type: "object",
  properties: {
    path: { type: "string", description: "The folder, relative to the workspace root. Default: the root" },
  },
  additionalProperties: false,
} as const;

const knownOptions = optionTable({
  root: is.text(),
  folders: is.list({ of: is.text() }),
  maxEntries: is.number({ from: 0, default: 1_000 }),
} satisfies OptionKinds<LsToolOptions>);

/**
 * Creates the tool `ls`, which lists one folder. Links are shown and not followed.
 *
 * @example
 * ```ts
 * import { lsTool } from "reeve/tools";
 *
 * const ls = lsTool({ root: "./workspace" });
 * ```
 */
export function lsTool(options: LsToolOptions): Tool {
  const { root: path, folders = [], maxEntries } = knownOptions.read("lsTool()", options);
  const base = new FileRoot(path, { folders });
  return tool({
    name: "ls",
    description: `List a folder of the workspace. Folders end in /, links show their target, files their size in bytes. At most ${maxEntries} entries.${furtherFolders(folders)}`,
    inputSchema: input,
    execute: async ({ path: requested = "." }, { folder: own }) => {
      const root = await base.in(own);
      const folder = await root.folder(requested);
      try {
        const entries = await readdir(folder.here, { withFileTypes: true });
        const sorted = entries.toSorted((one, other) => (one.name < other.name ? -1 : 1));
        const lines: string[] = [];
        for (const entry of sorted.slice(0, maxEntries)) lines.push(await lineOf(folder, entry));
        await folder.verify();
        const left = entries.length - lines.length;
        if (left > 0) lines.push(`[${left} more: use find with a pattern]`);
        const shown = await root.shown(folder.path);
        return textResult(lines.join("\n") || "[empty]", { path: shown, entries: entries.length });
      } catch (error) {
        throw fileFault(error, requested);
      } finally {
        await folder.close();
      }
    },
  });
}

async function lineOf(folder: OpenFolder, entry: Dirent): Promise<string> {
  const { name } = entry;
  try {
    if (entry.isDirectory()) return `${name}/`;
    if (entry.isSymbolicLink()) return `${name} -> ${await readlink(folder.at(name))}`;
    return entry.isFile() ? `${name} ${(await lstat(folder.at(name))).size}` : `${name} [not a regular file]`;
  } catch (error) {
    // The entry was deleted during the listing.
    if (codeOf(error) === "ENOENT" || codeOf(error) === "EINVAL") return `${name} [gone]`;
    throw error;
  }
}
