import { Fault, type CancelSignal, type Tool } from "../../kernel/index.ts";
import { looksBinary } from "../files/file-kind.ts";
import { readBytes } from "../files/file-lines.ts";
import { FileRoot } from "../files/file-root.ts";
import { matchingFiles } from "../files/matching-files.ts";
import { LineSearch } from "./line-search.ts";
import { errorResult, textResult } from "./tool-result.ts";
import { tool } from "./tool.ts";

export interface GrepToolOptions {
  readonly root: string;
  readonly maxMatches?: number;
  /** Larger files are not searched, and are counted in the answer. */
  readonly maxFileBytes?: number;
  readonly maxFiles?: number;
  readonly timeoutMs?: number;
}

const input = {
  type: "object",
  properties: {
    pattern: { type: "string", minLength: 1, description: "A JavaScript regular expression" },
    path: { type: "string", description: "A folder or file, from the workspace root; the root unless told" },
    glob: { type: "string", description: "Only files like this, such as **/*.ts" },
    literal: { type: "boolean", description: "The pattern is a text, not an expression" },
    ignoreCase: { type: "boolean" },
    ignored: { type: "boolean", description: "Also files that .gitignore leaves out, and node_modules" },
  },
  required: ["pattern"],
  additionalProperties: false,
} as const;

/** Of a line that is shown, in characters. */
const maxLine = 400;

/** Searches files for lines. An expression that takes for ever is stopped with the call. */
export function grepTool(options: GrepToolOptions): Tool {
  const { maxMatches = 200, maxFileBytes = 4 * 1024 * 1024, maxFiles = 20_000, timeoutMs = 20_000 } = options;
  const root = new FileRoot(options.root);

  /** `undefined`: binary, too large, gone or no longer inside. */
  async function textOf(path: string): Promise<string | undefined> {
    try {
      const { folder, file } = await root.read(path);
      try {
        const { size } = await file.stat();
        if (size > maxFileBytes) return undefined;
        const bytes = await readBytes(file, 0, size);
        return looksBinary(bytes.subarray(0, 8_192)) ? undefined : Buffer.from(bytes).toString("utf8");
      } finally {
        await file.close();
        await folder.close();
      }
    } catch (error) {
      if (Fault.is(error)) return undefined;
      throw error;
    }
  }

  async function filesIn(
    path: string,
    glob: string,
    ignored: boolean,
    signal: CancelSignal,
  ): Promise<readonly string[]> {
    if (path !== "." && (await isFile(root, path))) return [path];
    return matchingFiles(root, { pattern: glob, path, ignored, signal });
  }

  return tool({
    name: "grep",
    description: `Searches files of the workspace for lines that match, up to ${maxMatches}, as path:line: text. Leaves out binary files and what .gitignore names.`,
    inputSchema: input,
    timeoutMs,
    execute: async (
      { pattern, path = ".", glob = "**/*", literal = false, ignoreCase = false, ignored = false },
      { signal },
    ) => {
      const files = await filesIn(path, glob, ignored, signal);
      const source = literal ? pattern.replaceAll(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`) : pattern;
      const search = new LineSearch({ source, ignoreCase, maxLine });
      const stop = (): void => void search.close();
      signal.addEventListener("abort", stop, { once: true });
      try {
        const lines: string[] = [];
        let skipped = 0;
        for (const file of files.slice(0, maxFiles)) {
          signal.throwIfAborted();
          const text = await textOf(file);
          if (text === undefined) skipped++;
          else
            for (const match of await search.search(text, maxMatches + 1 - lines.length))
              lines.push(`${file}:${match.line}: ${match.text}`);
          if (lines.length > maxMatches) break;
        }
        const isCut = lines.length > maxMatches;
        const facts = {
          pattern,
          path,
          files: Math.min(files.length, maxFiles),
          skipped,
          matches: Math.min(lines.length, maxMatches),
          isCut,
        };
        const notes: string[] = [];
        if (isCut)
          notes.push(`[only the first ${maxMatches} matches: make the pattern or the path narrower]`);
        if (files.length > maxFiles) notes.push(`[only ${maxFiles} of ${files.length} files were searched]`);
        if (files.length === 0) return errorResult(`no file matches ${glob} in ${path}`, facts);
        const shown = [...lines.slice(0, maxMatches), ...notes];
        return textResult(shown.join("\n") || `[no line matches in ${files.length} files]`, facts);
      } finally {
        signal.removeEventListener("abort", stop);
        await search.close();
      }
    },
  });
}

/** A name that is a folder is refused as a file. */
async function isFile(root: FileRoot, path: string): Promise<boolean> {
  try {
    const { folder, file } = await root.read(path);
    await file.close();
    await folder.close();
    return true;
  } catch (error) {
    if (Fault.is(error) && error.code === "invalid_argument") return false;
    throw error;
  }
}
