import type { JsonObject, JsonValue } from "../../src/kernel/index.ts";
import type { AgentInfo } from "../api/types.ts";
import { plain } from "../base/format.ts";
import { inputText } from "./words/input-text.ts";

/** A file that is sent with a message. */
export interface Attached {
  readonly name: string;
  readonly part: JsonObject;
}

const mostBytes = 8 * 1024 * 1024;

/** Returns the input for a message: a text, or a text with files. */
export function inputOf(text: string, attached: readonly Attached[]): JsonValue {
  if (attached.length === 0) return text;
  return [{ type: "text", text }, ...attached.map(({ part }) => part)];
}

/** The initial content of the form for a new run. */
export interface NewRunValues {
  readonly agent?: string;
  /** The input of an earlier run. */
  readonly input?: JsonValue;
}

/** An input as a form shows it. */
export interface EarlierInput {
  readonly text: string;
  readonly attached: readonly Attached[];
  /** A value that matches the input schema of an agent or a workflow. `null` if the input is a message. */
  readonly value: JsonValue;
  /** Whether the text is JSON. */
  readonly isJson: boolean;
}

/** Where an input comes from. An agent with a schema records its value inside of an object, a workflow as it is. */
interface InputOrigin {
  readonly isRecorded: boolean;
  readonly kind: AgentInfo["kind"];
}

/** Splits an input into its text and its files, which stay attached. */
export function earlierInput(input: JsonValue, { isRecorded, kind }: InputOrigin): EarlierInput {
  if (typeof input === "string" || (input === null && kind === "agent"))
    return { text: input ?? "", attached: [], value: input, isJson: false };
  if (kind === "agent" && Array.isArray(input)) return messageOf(input as readonly JsonValue[]);
  const { value, prompt } = (input ?? {}) as { readonly value?: JsonValue; readonly prompt?: JsonValue };
  if (isRecorded && kind === "agent" && value === undefined && prompt !== undefined)
    return earlierInput(prompt, { isRecorded, kind });
  const own = isRecorded && kind === "agent" ? (value ?? input) : input;
  return { text: plain(own), attached: [], value: own, isJson: true };
}

/** A message: its texts, and its files. */
function messageOf(parts: readonly JsonValue[]): EarlierInput {
  const files = parts.filter(isFile);
  return {
    text: inputText(parts.filter((part) => !isFile(part))),
    attached: files.map((part, index) => ({ name: fileName(part, index), part })),
    value: null,
    isJson: false,
  };
}

function isFile(part: JsonValue): part is JsonObject {
  const { type } = (part ?? {}) as { readonly type?: JsonValue };
  return type === "image" || type === "file";
}

function fileName({ filename, type }: JsonObject, index: number): string {
  return typeof filename === "string" ? filename : `${type === "image" ? "image" : "file"} ${index + 1}`;
}

/** Reads files as parts of a message. Throws for a file that is too large. */
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
