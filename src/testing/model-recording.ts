import type { JsonObject, JsonValue, ModelRequest, ModelResponse, StreamedDelta } from "../kernel/index.ts";

/** The first line of a recording: whose it is. */
export interface RecordedModel {
  readonly type: "model";
  readonly version: 1;
  readonly provider: string;
  readonly modelId: string;
  readonly contextWindow?: number;
  readonly maxOutputTokens?: number;
}

/** One call, on a line of its own, in the order in which calls ended. */
export interface RecordedCall {
  readonly type: "call";
  readonly request: ModelRequest;
  /** The pieces in which it was streamed; absent: it was not. */
  readonly deltas?: readonly StreamedDelta[];
  readonly response?: ModelResponse;
  /** Instead of a response. */
  readonly error?: RecordedError;
}

/** What `classifyError` reads of an error, so that it is of the same kind when it is thrown again. */
export interface RecordedError {
  readonly name: string;
  readonly message: string;
  readonly fields: JsonObject;
  readonly cause?: RecordedError;
}

const maxCauses = 4;
const maxText = 20_000;
/** Of what a provider's error says, what may be kept: nothing that was sent, no address, no key. */
const keptFields = [
  "code",
  "type",
  "status",
  "statusCode",
  "status_code",
  "reason",
  "responseBody",
  "data",
  "error",
];
const keptHeaders = ["retry-after", "retry-after-ms", "x-ratelimit-reset-requests"];

export function recordError(error: unknown, causesLeft = maxCauses): RecordedError {
  const source = Object(error) as Readonly<Record<string, unknown>>;
  const fields: Record<string, JsonValue> = {};
  for (const key of keptFields) {
    const value = jsonOf(source[key]);
    if (value !== undefined) fields[key] = value;
  }
  const headers = headersOf(source["responseHeaders"] ?? source["headers"]);
  if (Object.keys(headers).length > 0) fields["responseHeaders"] = headers;
  const { cause } = source;
  return {
    name: error instanceof Error ? error.name : "Error",
    message: (error instanceof Error ? error.message : String(error)).slice(0, maxText),
    fields,
    ...(cause === undefined || causesLeft === 0 ? {} : { cause: recordError(cause, causesLeft - 1) }),
  };
}

export function reviveError({ name, message, fields, cause }: RecordedError): Error {
  const error = new Error(message, cause === undefined ? undefined : { cause: reviveError(cause) });
  return Object.assign(error, { ...fields, name });
}

function headersOf(headers: unknown): Record<string, string> {
  const found: Record<string, string> = {};
  if (typeof headers !== "object" || headers === null) return found;
  const entries: Iterable<readonly [string, unknown]> =
    headers instanceof Headers ? headers.entries() : Object.entries(headers);
  for (const [name, value] of entries)
    if (keptHeaders.includes(name.toLowerCase())) found[name.toLowerCase()] = String(value);
  return found;
}

function jsonOf(value: unknown): JsonValue | undefined {
  if (value === undefined || value === null || typeof value === "function") return undefined;
  const text = JSON.stringify(value);
  return text === undefined || text.length > maxText ? undefined : (JSON.parse(text) as JsonValue);
}
