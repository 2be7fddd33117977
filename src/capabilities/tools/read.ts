import type { FileHandle } from "node:fs/promises";
import { type Tool, type ToolResult, is, optionTable, type OptionKinds } from "../../kernel/index.ts";
import { FileRoot, furtherFolders } from "../files/file-root.ts";
import { imageType, looksBinary } from "../files/file-kind.ts";
import { readBytes, readLines } from "../files/file-lines.ts";
import { errorResult, imageResult, textResult } from "./tool-result.ts";
import { tool } from "./tool.ts";

/** Options of `readTool()`. */
export interface ReadToolOptions {
  /** Folder to which the tool is confined. */
  readonly root: string;
  /** Further folders that the tool may use. Calls name them by absolute paths. Default: none. */
  readonly folders?: readonly string[];
  /** Maximum number of bytes of text in one result. Default: 256 KiB. */
  readonly maxBytes?: number;
  /** Maximum number of lines in one result. Default: 2_000. */
  readonly maxLines?: number;
  /** Maximum size of an image in bytes. Default: 5 MiB. */
  readonly maxImageBytes?: number;
}

const input = {
  type: "object",
  properties: {
    path: { type: "string", description: "The file, relative to the workspace root" },
    offset: { type: "integer", minimum: 1, description: "The first line to read, starting at 1" },
    limit: { type: "integer", minimum: 1, description: "The maximum number of lines to read" },
  },
  required: ["path"],
  additionalProperties: false,
} as const;

/** Number of bytes from which the kind of a file is detected. */
const sniffed = 8_192;

/** Number of bytes that are searched for the first requested line. */
const maxSkipped = 256 * 1024 * 1024;

const knownOptions = optionTable({
  root: is.text(),
  folders: is.list({ of: is.text() }),
  maxBytes: is.number({ from: 0 }),
  maxLines: is.number({ from: 0, default: 2_000 }),
  maxImageBytes: is.number({ from: 0 }),
} satisfies OptionKinds<ReadToolOptions>);

/**
 * Creates the tool `read`, which reads a text file in pieces, or an image. Memory depends on the piece, not on the
 * size of the file. If a piece starts more than 256 MiB after the start of the file, the tool returns an error,
 * because counting the lines before it would take too long.
 *
 * @example
 * ```ts
 * import { readTool } from "reeve/tools";
 *
 * const read = readTool({ root: "./workspace", maxLines: 500 });
 * ```
 */
export function readTool(options: ReadToolOptions): Tool {
  const {
    maxBytes = 256 * 1024,
    maxLines,
    maxImageBytes = 5 * 1024 * 1024,
  } = knownOptions.read("readTool()", options);
  const { folders = [] } = options;
  const base = new FileRoot(options.root, { folders });

  async function readImage(
    file: FileHandle,
    size: number,
    mediaType: string,
    path: string,
  ): Promise<ToolResult> {
    const metadata = { path, size, mediaType };
    if (size > maxImageBytes)
      return errorResult(
        `${path} is an image of ${size} bytes; at most ${maxImageBytes} can be shown`,
        metadata,
      );
    return imageResult(await readBytes(file, 0, size), mediaType, { metadata });
  }

  return tool({
    name: "read",
    description: `Read a file of the workspace: text (at most ${maxLines} lines or ${maxBytes} bytes per call; continue with offset) or an image.${furtherFolders(folders)}`,
    inputSchema: input,
    execute: async ({ path, offset = 1, limit = maxLines }, { signal, folder: own }) => {
      const root = await base.in(own);
      const { folder, file, shown } = await root.read(path);
      try {
        const { size } = await file.stat();
        const start = await readBytes(file, 0, Math.min(size, sniffed));
        const mediaType = imageType(start);
        if (mediaType !== undefined) return await readImage(file, size, mediaType, shown);
        if (looksBinary(start))
          return errorResult(`${path} is a binary file of ${size} bytes: it cannot be read as text`, {
            path: shown,
            size,
          });
        const lines = Math.min(limit, maxLines);
        const page = await readLines(file, { from: offset, lines, maxBytes, maxSkipped, signal });
        const facts = { path: shown, size, from: offset, to: page.to, isWhole: page.isEnd && offset === 1 };
        if (page.isFar)
          return errorResult(
            `line ${offset} of ${path} is more than ${maxSkipped} bytes after its start, which has ${page.to} lines; search the file with grep`,
            facts,
          );
        if (page.to < offset && offset > 1)
          return errorResult(`${path} has only ${page.to} lines: there is no line ${offset}`, facts);
        return textResult(`${page.text}${noteOf(page, offset, size)}`, facts);
      } finally {
        await file.close();
        await folder.close();
      }
    },
  });
}

function noteOf(
  { isEnd, isCut, to, isExact }: Awaited<ReturnType<typeof readLines>>,
  from: number,
  size: number,
): string {
  const notes: string[] = [];
  if (!isExact) notes.push("bytes that are not UTF-8 are shown as \uFFFD");
  if (isCut) notes.push(`line ${to} is cut`);
  if (!isEnd) notes.push(`lines ${from} to ${to} of a file of ${size} bytes; continue with offset ${to + 1}`);
  return notes.length === 0 ? "" : `\n[${notes.join("; ")}]`;
}
