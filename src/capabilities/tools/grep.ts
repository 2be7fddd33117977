import {
  Fault,
  type CancelSignal,
  type Tool,
  is,
  optionTable,
  type OptionKinds,
} from "../../kernel/index.ts";
import { looksBinary } from "../files/file-kind.ts";
import { readBytes } from "../files/file-lines.ts";
import { FileRoot, furtherFolders } from "../files/file-root.ts";
import { matchingFiles } from "../files/matching-files.ts";
import { LineSearch } from "./line-search.ts";
import { errorResult, textResult } from "./tool-result.ts";
import { durationKind, tool } from "./tool.ts";

/** Options of `grepTool()`. */
export interface GrepToolOptions {
  /** Folder to which the tool is confined. */
  readonly root: string;
  /** Further folders that the tool may use. Calls name them by absolute paths. Default: none. */
  readonly folders?: readonly string[];
  /** Maximum number of matching lines in a result. Default: 200. */
  readonly maxMatches?: number;
  /**
   * Maximum size of a file that is searched, in bytes. Larger files are skipped and counted in the metadata. Default: 4
   * MiB.
   */
  readonly maxFileBytes?: number;
  /** Maximum number of files that one call searches. Default: 20_000. */
  readonly maxFiles?: number;
  /**
   * Maximum duration of a search, in milliseconds. A search that takes longer is an error result. Default, also for
   * `null`: 20_000.
   */
  readonly timeoutMs?: number | null;
}

const input = {
  type: "object",
  properties: {
    pattern: {
      type: "string",
      minLength: 1,
      maxLength: 1_000,
      description: "A JavaScript regular expression of at most 1000 characters",
    },
    path: {
      type: "string",
      description: "A folder or file, relative to the workspace root. Default: the root",
    },
    glob: { type: "string", description: "Search only files that match this glob, such as **/*.ts" },
    literal: { type: "boolean", description: "Treat the pattern as plain text, not as an expression" },
    ignoreCase: { type: "boolean" },
    ignored: { type: "boolean", description: "Include files that .gitignore excludes, and node_modules" },
  },
  required: ["pattern"],
  additionalProperties: false,
} as const;

/** Maximum length of a line in a result, in characters. */
const maxLine = 400;

const defaultMs = 20_000;

const knownOptions = optionTable({
  root: is.text(),
  folders: is.list({ of: is.text() }),
  maxMatches: is.number({ from: 0, default: 200 }),
  maxFileBytes: is.number({ from: 0 }),
  maxFiles: is.number({ from: 0, default: 20_000 }),
  timeoutMs: durationKind(defaultMs),
} satisfies OptionKinds<GrepToolOptions>);

/**
 * Creates the tool `grep`, which searches files for lines. The expression is compiled and executed in a thread, so
 * that one that takes too long blocks nothing else and is stopped at the time limit.
 *
 * @example
 * ```ts
 * import { grepTool } from "reeve/tools";
 *
 * const grep = grepTool({ root: "./workspace", maxMatches: 50 });
 * ```
 */
export function grepTool(options: GrepToolOptions): Tool {
  const {
    maxMatches,
    maxFileBytes = 4 * 1024 * 1024,
    maxFiles,
    timeoutMs: limitMs,
  } = knownOptions.read("grepTool()", options);
  const timeoutMs = limitMs ?? defaultMs;
  const { folders = [] } = options;
  const base = new FileRoot(options.root, { folders });

  /**
   * Returns the text of a file, or `undefined` if the file is binary, too large, deleted or no longer inside the root.
   */
  async function textOf(root: FileRoot, path: string): Promise<string | undefined> {
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

  return tool({
    name: "grep",
    description: `Search files of the workspace for matching lines. Returns at most ${maxMatches} lines as path:line: text. Binary files and files that .gitignore excludes are left out.${furtherFolders(folders)}`,
    inputSchema: input,
    // The search's own time limit comes first, because its result says what to change.
    timeoutMs: timeoutMs + 5_000,
    execute: async (
      { pattern, path = ".", glob = "**/*", literal = false, ignoreCase = false, ignored = false },
      { signal: callSignal, folder: own },
    ) => {
      const root = await base.in(own);
      const limit = AbortSignal.timeout(timeoutMs);
      const signal = AbortSignal.any([callSignal, limit]);
      const source = literal ? pattern.replaceAll(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`) : pattern;
      const search = new LineSearch({ source, ignoreCase, maxLine });
      const stop = (): void => void search.close();
      signal.addEventListener("abort", stop, { once: true });
      try {
        const files = await filesIn(root, path, glob, ignored, signal);
        // Reports an invalid pattern before any file is read.
        await search.search("", 0);
        const lines: string[] = [];
        let skipped = 0;
        for (const file of files.slice(0, maxFiles)) {
          signal.throwIfAborted();
          const text = await textOf(root, file);
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
          notes.push(`[only the first ${maxMatches} matches are shown: use a narrower pattern or path]`);
        if (files.length > maxFiles) notes.push(`[only ${maxFiles} of ${files.length} files were searched]`);
        if (files.length === 0) return errorResult(`no file matches ${glob} in ${path}`, facts);
        const shown = [...lines.slice(0, maxMatches), ...notes];
        return textResult(shown.join("\n") || `[no line matches in ${files.length} files]`, facts);
      } catch (error) {
        if (!limit.aborted || callSignal.aborted) throw error;
        return errorResult(
          `the search took longer than ${timeoutMs} ms and was stopped: use a simpler pattern, or a narrower path or glob`,
          { pattern, path },
        );
      } finally {
        signal.removeEventListener("abort", stop);
        await search.close();
      }
    },
  });
}

async function filesIn(
  root: FileRoot,
  path: string,
  glob: string,
  ignored: boolean,
  signal: CancelSignal,
): Promise<readonly string[]> {
  if (path !== "." && (await isFile(root, path))) return [path];
  return matchingFiles(root, { pattern: glob, path, ignored, signal });
}

/** Whether the path is a file. Reading a folder as a file throws `invalid_argument`. */
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
