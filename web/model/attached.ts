import type { JsonObject, JsonValue } from "../../src/kernel/index.ts";

/** A file that is sent with a message. */
export interface Attached {
  readonly name: string;
  readonly part: JsonObject;
}

const mostBytes = 8 * 1024 * 1024;

/** The input of a message: a text, or a text with files. */
export function inputOf(text: string, attached: readonly Attached[]): JsonValue {
  if (attached.length === 0) return text;
  return [{ type: "text", text }, ...attached.map(({ part }) => part)];
}

/** Reads files as parts of a message. Throws for one that is too large. */
export function readFiles(files: FileList | null): Promise<readonly Attached[]> {
  return Promise.all([...(files ?? [])].map(partOf));
}

async function partOf(file: File): Promise<Attached> {
  if (file.size > mostBytes) throw new Error(`${file.name} is larger than 8 MB.`);
  const bytes = new Uint8Array(await file.arrayBuffer());
  let binary = "";
  for (let at = 0; at < bytes.length; at += 8_192)
    binary += String.fromCharCode(...bytes.subarray(at, at + 8_192));
  const source = { kind: "base64", data: btoa(binary) };
  const mediaType = file.type === "" ? "application/octet-stream" : file.type;
  const part = mediaType.startsWith("image/")
    ? { type: "image", mediaType, source }
    : { type: "file", mediaType, source, filename: file.name };
  return { name: file.name, part };
}
