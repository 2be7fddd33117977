import { createHash } from "node:crypto";
import type { Tool } from "../../kernel/index.ts";
import { fileFault, FileRoot } from "../files/file-root.ts";
import { fileState, replaceFile } from "../files/replace-file.ts";
import { errorResult, textResult } from "./tool-result.ts";
import { tool } from "./tool.ts";

export interface WriteToolOptions {
  readonly root: string;
  readonly maxBytes?: number;
}

const input = {
  type: "object",
  properties: {
    path: { type: "string", description: "The file, from the workspace root; folders are made" },
    content: { type: "string", description: "All of the file" },
  },
  required: ["path", "content"],
  additionalProperties: false,
} as const;

/** Writes a whole file, all or nothing. */
export function writeTool({ root: path, maxBytes = 1024 * 1024 }: WriteToolOptions): Tool {
  const root = new FileRoot(path);
  return tool({
    name: "write",
    description: `Writes a file of the workspace, in place of what it held. Up to ${maxBytes} bytes. To change a part, use edit.`,
    inputSchema: input,
    risk: "high",
    edits: true,
    concurrency: "sequential",
    execute: async (file) => {
      const bytes = Buffer.from(file.content);
      if (bytes.length > maxBytes)
        return errorResult(`content is ${bytes.length} bytes; at most ${maxBytes} can be written`);
      const place = await root.place(file.path, { create: true });
      const { folder, shown } = place;
      try {
        const before = await fileState(place);
        await replaceFile(place, bytes, before);
        const isNew = before === null;
        const sha256 = createHash("sha256").update(bytes).digest("hex");
        return textResult(`${isNew ? "wrote" : "replaced"} ${shown}: ${bytes.length} bytes`, {
          path: shown,
          bytes: bytes.length,
          isNew,
          sha256,
        });
      } catch (error) {
        throw fileFault(error, file.path);
      } finally {
        await folder.close();
      }
    },
  });
}
