import type { Dirent } from "node:fs";
import { lstat, readdir, readlink } from "node:fs/promises";
import type { Tool } from "../../kernel/index.ts";
import { codeOf, fileFault, FileRoot } from "../files/file-root.ts";
import type { OpenFolder } from "../files/open-folder.ts";
import { textResult } from "./tool-result.ts";
import { tool } from "./tool.ts";

export interface LsToolOptions {
  readonly root: string;
  readonly maxEntries?: number;
}

const input = {
  type: "object",
  properties: {
    path: { type: "string", description: "The folder, from the workspace root; the root unless told" },
  },
  additionalProperties: false,
} as const;

/** Lists one folder. Links are shown, not followed. */
export function lsTool({ root: path, maxEntries = 1_000 }: LsToolOptions): Tool {
  const root = new FileRoot(path);
  return tool({
    name: "ls",
    description: `Lists a folder of the workspace: folders end in /, links show where they lead, files their size in bytes. Up to ${maxEntries} entries.`,
    inputSchema: input,
    execute: async ({ path: where = "." }) => {
      const folder = await root.folder(where);
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
        throw fileFault(error, where);
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
    return entry.isFile() ? `${name} ${(await lstat(folder.at(name))).size}` : `${name} [no regular file]`;
  } catch (error) {
    // It went while it was listed.
    if (codeOf(error) === "ENOENT" || codeOf(error) === "EINVAL") return `${name} [gone]`;
    throw error;
  }
}
