import type {
  FilePart,
  ImagePart,
  JsonObject,
  JsonValue,
  MediaSource,
  TextPart,
  ToolOutput,
  ToolResult,
} from "../../kernel/index.ts";

/** What a body may return: a text, JSON, nothing, or a whole result. */
export type ToolReturn = JsonValue | ToolResult | undefined | void;

/** Bytes, or an address: http, data, or a blob of the run. */
export type MediaData = Uint8Array | { readonly url: string };

export interface MediaOptions {
  /** Said to the model before it. */
  readonly text?: string;
  readonly metadata?: JsonObject;
}

export function textResult(text: string, metadata?: JsonObject): ToolResult {
  return withMetadata({ output: { type: "text", text }, isError: false }, metadata);
}

/** What went wrong, and what to do: the model reads it. */
export function errorResult(text: string, metadata?: JsonObject): ToolResult {
  return withMetadata({ output: { type: "text", text }, isError: true }, metadata);
}

export function imageResult(data: MediaData, mediaType: string, options: MediaOptions = {}): ToolResult {
  return mediaResult({ type: "image", mediaType, source: sourceOf(data) }, options);
}

export function fileResult(
  data: MediaData,
  mediaType: string,
  { filename, ...options }: MediaOptions & { readonly filename?: string } = {},
): ToolResult {
  const named = filename === undefined ? {} : { filename };
  return mediaResult({ type: "file", mediaType, source: sourceOf(data), ...named }, options);
}

/** A body's return as a result. */
export function toolResult(value: ToolReturn): ToolResult {
  return isResult(value) ? value : { output: toolOutput(value ?? ""), isError: false };
}

function toolOutput(value: JsonValue): ToolOutput {
  return typeof value === "string" ? { type: "text", text: value } : { type: "json", value };
}

const outputTypes: readonly unknown[] = ["text", "json", "content"] satisfies ToolOutput["type"][];

function isResult(value: ToolReturn): value is ToolResult {
  if (typeof value !== "object" || value === null || !("output" in value) || !("isError" in value))
    return false;
  const { output, isError } = value;
  return (
    typeof isError === "boolean" &&
    typeof output === "object" &&
    output !== null &&
    "type" in output &&
    outputTypes.includes(output.type)
  );
}

function mediaResult(part: ImagePart | FilePart, { text, metadata }: MediaOptions): ToolResult {
  const said: readonly TextPart[] = text === undefined ? [] : [{ type: "text", text }];
  return withMetadata({ output: { type: "content", parts: [...said, part] }, isError: false }, metadata);
}

function sourceOf(data: MediaData): MediaSource {
  if (!(data instanceof Uint8Array)) return { kind: "url", url: data.url };
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  return { kind: "base64", data: bytes.toString("base64") };
}

function withMetadata(result: ToolResult, metadata: JsonObject | undefined): ToolResult {
  return metadata === undefined ? result : { ...result, metadata };
}
