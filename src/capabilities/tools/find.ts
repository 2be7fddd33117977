import { Fault, type Tool } from "../../kernel/index.ts";
import { FileRoot } from "../files/file-root.ts";
import { matchingFiles } from "../files/matching-files.ts";
import { textResult } from "./tool-result.ts";
import { tool } from "./tool.ts";

export interface FindToolOptions {
  readonly root: string;
  readonly maxResults?: number;
  readonly timeoutMs?: number;
}

const input = {
  type: "object",
  properties: {
    pattern: {
      type: "string",
      description: "A glob such as src/**/*.ts; a name alone is looked for in the folder only",
    },
    path: {
      type: "string",
      description: "The folder to look in, from the workspace root; the root unless told",
    },
    ignored: { type: "boolean", description: "Also files that .gitignore leaves out, and node_modules" },
  },
  required: ["pattern"],
  additionalProperties: false,
} as const;

/** Finds files by a glob. */
export function findTool({ root: path, maxResults = 500, timeoutMs = 20_000 }: FindToolOptions): Tool {
  const root = new FileRoot(path);
  return tool({
    name: "find",
    description: `Finds files of the workspace by a glob, up to ${maxResults}. Leaves out what .gitignore names, unless ignored.`,
    inputSchema: input,
    timeoutMs,
    execute: async ({ pattern, path: from = ".", ignored = false }, { signal }) => {
      const found = await matchingFiles(root, { pattern, path: from, ignored, signal });
      const shown: string[] = [];
      for (const file of found.slice(0, maxResults)) if (await isInside(root, file)) shown.push(file);
      const left = Math.max(0, found.length - maxResults);
      const more = left > 0 ? [`[${left} more: make the pattern narrower]`] : [];
      return textResult([...shown, ...more].join("\n") || `[no file matches ${pattern}]`, {
        pattern,
        path: from,
        found: found.length,
      });
    },
  });
}

/** R1: a folder may have become a link to elsewhere while it was walked. */
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
