import { Fault, type Tool, is, optionTable, type OptionKinds } from "../../kernel/index.ts";
import { codeOf } from "../files/error-code.ts";
import { fileFault, FileRoot, furtherFolders, openRegular, type Place } from "../files/file-root.ts";
import { readBytes } from "../files/file-lines.ts";
import { replaceKept } from "../files/previous-content.ts";
import type { FileState } from "../files/replace-file.ts";
import { errorResult, textResult } from "./tool-result.ts";
import { tool } from "./tool.ts";

/** Options of `editTool()`. */
export interface EditToolOptions {
  /** Folder to which the tool is confined. */
  readonly root: string;
  /** Further folders that the tool may use. Calls name them by absolute paths. Default: none. */
  readonly folders?: readonly string[];
  /** Maximum size of the file in bytes, before and after the edit. Default: 4 MiB. */
  readonly maxBytes?: number;
}

const input = {
  type: "object",
  properties: {
    path: { type: "string", description: "The file, relative to the workspace root" },
    oldText: {
      type: "string",
      minLength: 1,
      description: "The exact text to replace, including white space",
    },
    newText: { type: "string", description: "The text to insert instead" },
    all: {
      type: "boolean",
      description: "Replace every occurrence. Otherwise the text must occur exactly once",
    },
  },
  required: ["path", "oldText", "newText"],
  additionalProperties: false,
} as const;

/** Maximum length of the diff that is stored with the call, in characters. */
const maxDiff = 65_536;

const knownOptions = optionTable({
  root: is.text(),
  folders: is.list({ of: is.text() }),
  maxBytes: is.number({ from: 0 }),
} satisfies OptionKinds<EditToolOptions>);

/**
 * Creates the tool `edit`, which replaces an exact text in a file atomically and stores a unified diff in the metadata. J6: if the call is
 * repeated after a crash, it finds the new text and reports that the edit seems to be done.
 *
 * @example
 * ```ts
 * import { editTool, readTool } from "reeve/tools";
 *
 * const tools = [readTool({ root: "./workspace" }), editTool({ root: "./workspace" })];
 * ```
 */
export function editTool(options: EditToolOptions): Tool {
  const { root: path, folders = [], maxBytes = 4 * 1024 * 1024 } = knownOptions.read("editTool()", options);
  const base = new FileRoot(path, { folders });
  return tool({
    name: "edit",
    description: `Replace an exact text in a file of the workspace. The text must occur exactly once: include surrounding lines to make it unique, or set all.${furtherFolders(folders)}`,
    inputSchema: input,
    risk: "high",
    edits: true,
    concurrency: "sequential",
    execute: async ({ path: file, oldText, newText, all = false }, context) => {
      const root = await base.in(context.folder);
      if (oldText === newText)
        return errorResult("oldText and newText are equal: there is nothing to change");
      const place = await root.place(file, { write: true });
      try {
        const { state, text } = await readText(place, file, maxBytes);
        const places = occurrences(text, oldText);
        if (places.length === 0) return errorResult(`${file} ${whyNot(text, oldText, newText)}`);
        if (places.length > 1 && !all) {
          const lines = places.slice(0, 10).map((at) => lineAt(text, at));
          return errorResult(
            `oldText occurs ${places.length} times in ${file}, in lines ${lines.join(", ")}: include surrounding lines to make it unique, or set all`,
          );
        }
        const edited = text.split(oldText).join(newText);
        const bytes = Buffer.from(edited);
        if (bytes.length > maxBytes)
          return errorResult(`${file} would have ${bytes.length} bytes; at most ${maxBytes} are allowed`);
        await replaceKept(context, place, { before: state, after: bytes });
        const { shown } = place;
        const metadata = { path: shown, replaced: places.length, bytes: bytes.length };
        return textResult(
          `replaced ${places.length === 1 ? "1 occurrence" : `${places.length} occurrences`} in ${shown}, first in line ${lineAt(text, places[0] ?? 0)}`,
          { ...metadata, ...(await diffOf(shown, text, edited)) },
        );
      } catch (error) {
        throw fileFault(error, file);
      } finally {
        await place.folder.close();
      }
    },
  });
}

async function readText(
  place: Place,
  path: string,
  maxBytes: number,
): Promise<{ readonly state: FileState; readonly text: string }> {
  const file = await openRegular(place, path, 0);
  try {
    await place.folder.verify();
    const state = await file.stat({ bigint: true });
    if (state.size > maxBytes)
      throw new Fault(
        "invalid_argument",
        `${path} has ${state.size} bytes; at most ${maxBytes} can be edited`,
      );
    const bytes = await readBytes(file, 0, Number(state.size));
    return { state, text: decoded(bytes, path) };
  } finally {
    await file.close();
  }
}

/** Decodes UTF-8 and refuses anything else, because other bytes would change when they are written back. */
function decoded(bytes: Uint8Array, path: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    if (codeOf(error) !== "ERR_ENCODING_INVALID_ENCODED_DATA") throw error;
    throw new Fault("invalid_argument", `${path} is not UTF-8 text: it cannot be edited`, { cause: error });
  }
}

function occurrences(text: string, part: string): readonly number[] {
  const found: number[] = [];
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + part.length)) found.push(at);
  return found;
}

function whyNot(text: string, oldText: string, newText: string): string {
  if (text.includes("\r\n") && !oldText.includes("\r\n") && text.includes(oldText.replaceAll("\n", "\r\n")))
    return "has lines that end in \\r\\n: use \\r\\n in oldText and newText";
  if (newText !== "" && text.includes(newText))
    return "does not contain oldText but contains newText: the edit seems to be done already";
  if (loose(text).includes(loose(oldText)))
    return "contains oldText only with other white space: read the file and copy the text exactly";
  return "does not contain oldText: read the file and copy the text exactly";
}

function loose(text: string): string {
  return text.replaceAll(/\s+/g, " ").trim();
}

function lineAt(text: string, index: number): number {
  return text.slice(0, index).split("\n").length;
}

/**
 * Computes the diff after the file is written. Returns no diff if this takes longer than 200 ms, because other
 * calls wait during this time.
 */
async function diffOf(path: string, before: string, after: string): Promise<{ readonly diff?: string }> {
  const { createPatch } = await import("diff");
  const diff = createPatch(path, before, after, undefined, undefined, { context: 3, timeout: 200 });
  if (diff === undefined) return {};
  return { diff: diff.length > maxDiff ? `${diff.slice(0, maxDiff)}\n[cut]` : diff };
}
