import {
  assertJson,
  deepestJson,
  isJson,
  type FilePart,
  type ImagePart,
  type JsonObject,
  type JsonValue,
  type MediaSource,
  type TextPart,
  type ToolOutput,
  type ToolResult,
  is,
  optionTable,
  type OptionKinds,
} from "../../kernel/index.ts";

/**
 * A value that a tool body may return: a text, a value that can be written as JSON, nothing, or a whole result. Objects
 * with `toJSON`, such as dates, are converted, and members that are `undefined` are left out.
 */
export type ToolReturn = string | number | boolean | object | null | undefined | void;

/** Content of an image or a file: bytes, or a URL (http, data, or a blob of the run). */
export type MediaData = Uint8Array | { readonly url: string };

/** Options of `imageResult` and `fileResult`. */
export interface MediaOptions {
  /** Text that the model sees before the image or file. */
  readonly text?: string;
  /** Facts about the call that are stored with the result. The model does not see them. */
  readonly metadata?: JsonObject;
}

const imageTable = optionTable({ text: is.text(), metadata: is.any } satisfies OptionKinds<MediaOptions>);
const fileTable = optionTable({ text: is.text(), metadata: is.any, filename: is.any } satisfies OptionKinds<
  MediaOptions & { readonly filename?: string }
>);

/** Returns a successful result with a text for the model. `metadata` is stored and not shown to the model. */
export function textResult(text: string, metadata?: JsonObject): ToolResult {
  return withMetadata({ output: { type: "text", text }, isError: false }, metadata);
}

/** Returns an error result. The model reads the text, so it should say what went wrong and what to do. */
export function errorResult(text: string, metadata?: JsonObject): ToolResult {
  return withMetadata({ output: { type: "text", text }, isError: true }, metadata);
}

/** Returns a successful result with an image. */
export function imageResult(data: MediaData, mediaType: string, options: MediaOptions = {}): ToolResult {
  imageTable.read("imageResult()", options);
  return mediaResult({ type: "image", mediaType, source: sourceOf(data) }, options);
}

/** Returns a successful result with a file, for example a PDF. */
export function fileResult(
  data: MediaData,
  mediaType: string,
  given: MediaOptions & { readonly filename?: string } = {},
): ToolResult {
  const { filename, ...options } = fileTable.read("fileResult()", given);
  const named = filename === undefined ? {} : { filename };
  return mediaResult({ type: "file", mediaType, source: sourceOf(data), ...named }, options);
}

/** Converts the return value of a tool body to a result. */
export function toolResult(value: ToolReturn): ToolResult {
  return isResult(value) ? value : { output: toolOutput(resultJson(value ?? "")), isError: false };
}

/** The output that the model sees for a value. */
export function toolOutput(value: JsonValue): ToolOutput {
  return typeof value === "string" ? { type: "text", text: value } : { type: "json", value };
}

/**
 * J10: converts a result to JSON. It calls `toJSON` and leaves out members that are `undefined`. A value that would
 * lose information, such as NaN, a bigint, a `Map` or a cycle, throws `not_json` with its path.
 */
function resultJson(value: unknown): JsonValue {
  if (isJson(value)) return value;
  const plain = converted(value, []);
  assertJson(plain, "the result of the tool");
  return plain;
}

function converted(value: unknown, around: readonly object[]): unknown {
  if (Object.is(value, -0)) return 0;
  // A cycle and what is nested too deep stay as they are, so that the check refuses them.
  if (typeof value !== "object" || value === null || around.includes(value)) return value;
  if (around.length > deepestJson) return value;
  const inside = [...around, value];
  if ("toJSON" in value && typeof value.toJSON === "function")
    return converted((value.toJSON as (key: string) => unknown)(""), inside);
  if (Array.isArray(value)) return value.map((each: unknown) => converted(each, inside));
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return value;
  const copy: Record<string, unknown> = {};
  for (const [key, member] of Object.entries(value))
    if (member !== undefined)
      Object.defineProperty(copy, key, {
        value: converted(member, inside),
        writable: true,
        enumerable: true,
        configurable: true,
      });
  return copy;
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
