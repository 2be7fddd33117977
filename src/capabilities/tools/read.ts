import type { FileHandle } from "node:fs/promises";
import type { Tool, ToolResult } from "../../kernel/index.ts";
import { FileRoot } from "../files/file-root.ts";
import { imageType, looksBinary } from "../files/file-kind.ts";
import { readBytes, readLines } from "../files/file-lines.ts";
import { errorResult, imageResult, textResult } from "./tool-result.ts";
import { tool } from "./tool.ts";

export interface ReadToolOptions {
  readonly root: string;
  /** Of text in one call. */
  readonly maxBytes?: number;
  readonly maxLines?: number;
  readonly maxImageBytes?: number;
}

const input = {
  type: "object",
  properties: {
    path: { type: "string", description: "The file, from the workspace root" },
    offset: { type: "integer", minimum: 1, description: "The first line to read, from 1" },
    limit: { type: "integer", minimum: 1, description: "How many lines" },
  },
  required: ["path"],
  additionalProperties: false,
} as const;

/** How much of a file is looked at to tell what it is. */
const sniffed = 8_192;

/** Reads a text a piece at a time, or an image. Memory and time go with what is shown, not with the file. */
export function readTool(options: ReadToolOptions): Tool {
  const { maxBytes = 256 * 1024, maxLines = 2_000, maxImageBytes = 5 * 1024 * 1024 } = options;
  const root = new FileRoot(options.root);

  async function readImage(
    file: FileHandle,
    size: number,
    mediaType: string,
    path: string,
  ): Promise<ToolResult> {
    const metadata = { path, size, mediaType };
    if (size > maxImageBytes)
      return errorResult(`${path} is an image of ${size} bytes; ${maxImageBytes} can be shown`, metadata);
    return imageResult(await readBytes(file, 0, size), mediaType, { metadata });
  }

  return tool({
    name: "read",
    description: `Reads a file of the workspace: text (up to ${maxLines} lines or ${maxBytes} bytes a call; go on with offset) or an image.`,
    inputSchema: input,
    execute: async ({ path, offset = 1, limit = maxLines }, { signal }) => {
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
        const page = await readLines(file, { from: offset, lines, maxBytes, signal });
        const facts = { path: shown, size, from: offset, to: page.to, isWhole: page.isEnd && offset === 1 };
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
  if (!isExact) notes.push("bytes that are no UTF-8 are shown as \uFFFD");
  if (isCut) notes.push(`line ${to} is cut`);
  if (!isEnd) notes.push(`lines ${from} to ${to} of a file of ${size} bytes; go on with offset ${to + 1}`);
  return notes.length === 0 ? "" : `\n[${notes.join("; ")}]`;
}
