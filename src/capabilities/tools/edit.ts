import { Fault, type Tool } from "../../kernel/index.ts";
import { codeOf, fileFault, FileRoot, openRegular, type Place } from "../files/file-root.ts";
import { readBytes } from "../files/file-lines.ts";
import { replaceFile, type FileState } from "../files/replace-file.ts";
import { errorResult, textResult } from "./tool-result.ts";
import { tool } from "./tool.ts";

export interface EditToolOptions {
  readonly root: string;
  /** Of the file, before and after. */
  readonly maxBytes?: number;
}

const input = {
  type: "object",
  properties: {
    path: { type: "string", description: "The file, from the workspace root" },
    oldText: { type: "string", minLength: 1, description: "The exact text to replace, with its white space" },
    newText: { type: "string", description: "What to put there" },
    all: { type: "boolean", description: "Replace every occurrence; otherwise there must be exactly one" },
  },
  required: ["path", "oldText", "newText"],
  additionalProperties: false,
} as const;

/** Of the diff that is kept with the call. */
const maxDiff = 65_536;

/**
 * Replaces an exact text in a file, all or nothing, with a unified diff in the metadata. J6: repeated after a crash it finds its own work
 * and says so.
 */
export function editTool({ root: path, maxBytes = 4 * 1024 * 1024 }: EditToolOptions): Tool {
  const root = new FileRoot(path);
  return tool({
    name: "edit",
    description:
      "Replaces an exact text in a file of the workspace. The text must occur once: add lines around it to tell it from others, or set all.",
    inputSchema: input,
    risk: "high",
    edits: true,
    concurrency: "sequential",
    execute: async ({ path: file, oldText, newText, all = false }) => {
      if (oldText === newText) return errorResult("oldText and newText are the same: nothing to do");
      const place = await root.place(file);
      try {
        const { state, text } = await readText(place, file, maxBytes);
        const places = occurrences(text, oldText);
        if (places.length === 0) return errorResult(`${file} ${whyNot(text, oldText, newText)}`);
        if (places.length > 1 && !all) {
          const lines = places.slice(0, 10).map((at) => lineAt(text, at));
          return errorResult(
            `oldText occurs ${places.length} times in ${file}, in lines ${lines.join(", ")}: add lines around it, or set all`,
          );
        }
        const edited = text.split(oldText).join(newText);
        const bytes = Buffer.from(edited);
        if (bytes.length > maxBytes)
          return errorResult(`${file} would be ${bytes.length} bytes; at most ${maxBytes} are allowed`);
        await replaceFile(place, bytes, state);
        const { shown } = place;
        const metadata = { path: shown, replaced: places.length, bytes: bytes.length };
        return textResult(
          `replaced ${places.length === 1 ? "1 place" : `${places.length} places`} in ${shown}, first in line ${lineAt(text, places[0] ?? 0)}`,
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
        `${path} is ${state.size} bytes; at most ${maxBytes} can be edited`,
      );
    const bytes = await readBytes(file, 0, Number(state.size));
    return { state, text: decoded(bytes, path) };
  } finally {
    await file.close();
  }
}

/** What is no UTF-8 would be written back as something else. */
function decoded(bytes: Uint8Array, path: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    if (codeOf(error) !== "ERR_ENCODING_INVALID_ENCODED_DATA") throw error;
    throw new Fault("invalid_argument", `${path} is no UTF-8 text: it cannot be edited`, { cause: error });
  }
}

function occurrences(text: string, part: string): readonly number[] {
  const found: number[] = [];
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + part.length)) found.push(at);
  return found;
}

function whyNot(text: string, oldText: string, newText: string): string {
  if (text.includes("\r\n") && !oldText.includes("\r\n") && text.includes(oldText.replaceAll("\n", "\r\n")))
    return "has lines that end in \\r\\n: write oldText and newText with them";
  if (newText !== "" && text.includes(newText))
    return "does not hold oldText, but holds newText: it seems to be done already";
  if (loose(text).includes(loose(oldText)))
    return "holds oldText only with other white space: read it and copy the text exactly";
  return "does not hold oldText: read it and copy the text exactly";
}

function loose(words: string): string {
  return words.replaceAll(/\s+/g, " ").trim();
}

function lineAt(text: string, index: number): number {
  return text.slice(0, index).split("\n").length;
}

/** Made last, and given up rather than waited for: the file is what counts. */
async function diffOf(path: string, before: string, after: string): Promise<{ readonly diff?: string }> {
  const { createPatch } = await import("diff");
  const diff = createPatch(path, before, after, undefined, undefined, { context: 3, timeout: 2_000 });
  if (diff === undefined) return {};
  return { diff: diff.length > maxDiff ? `${diff.slice(0, maxDiff)}\n[cut]` : diff };
}
