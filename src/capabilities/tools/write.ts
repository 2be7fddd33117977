import { type Tool, is, optionTable, type OptionKinds } from "../../kernel/index.ts";
import { fileFault, FileRoot, furtherFolders } from "../files/file-root.ts";
import { replaceKept, sha256 } from "../files/previous-content.ts";
import { fileState } from "../files/replace-file.ts";
import { errorResult, textResult } from "./tool-result.ts";
import { tool } from "./tool.ts";

/** Options of `writeTool()`. */
export interface WriteToolOptions {
  /** Folder to which the tool is confined. */
  readonly root: string;
  /** Further folders that the tool may use. Calls name them by absolute paths. Default: none. */
  readonly folders?: readonly string[];
  /** Maximum size of the content in bytes. Default: 1 MiB. */
  readonly maxBytes?: number;
}

const input = {
  type: "object",
  properties: {
    path: {
      type: "string",
      description: "The file, relative to the workspace root. Missing folders are created",
    },
    content: { type: "string", description: "The whole content of the file" },
  },
  required: ["path", "content"],
  additionalProperties: false,
} as const;

const knownOptions = optionTable({
  root: is.text(),
  folders: is.list({ of: is.text() }),
  maxBytes: is.number({ from: 0 }),
} satisfies OptionKinds<WriteToolOptions>);

/**
 * Creates the tool `write`, which writes a whole file atomically. The journal keeps the previous content of the file, up to
 * 4 MiB, so that `reeve chat` can restore it.
 *
 * @example
 * ```ts
 * import { writeTool } from "reeve/tools";
 *
 * const write = writeTool({ root: "./workspace", maxBytes: 100_000 });
 * ```
 */
export function writeTool(options: WriteToolOptions): Tool {
  const { root: path, folders = [], maxBytes = 1024 * 1024 } = knownOptions.read("writeTool()", options);
  const base = new FileRoot(path, { folders });
  return tool({
    name: "write",
    description: `Write a whole file of the workspace and replace its previous content. At most ${maxBytes} bytes. Use edit to change a part of a file.${furtherFolders(folders)}`,
    inputSchema: input,
    risk: "high",
    edits: true,
    concurrency: "sequential",
    execute: async (file, context) => {
      const root = await base.in(context.folder);
      const bytes = Buffer.from(file.content);
      if (bytes.length > maxBytes)
        return errorResult(`content has ${bytes.length} bytes; at most ${maxBytes} can be written`);
      const place = await root.place(file.path, { write: true, create: true });
      const { folder, shown } = place;
      try {
        const before = await fileState(place);
        await replaceKept(context, place, { before, after: bytes });
        const isNew = before === null;
        return textResult(`${isNew ? "wrote" : "replaced"} ${shown}: ${bytes.length} bytes`, {
          path: shown,
          bytes: bytes.length,
          isNew,
          sha256: sha256(bytes),
        });
      } catch (error) {
        throw fileFault(error, file.path);
      } finally {
        await folder.close();
      }
    },
  });
}
