import type { JsonObject, JsonValue, ModelRequest, ModelResponse, StreamedDelta } from "../kernel/index.ts";

/** The first line of a recording: names the recorded model. */
export interface RecordedModel {
  readonly type: "model";
  readonly version: 1;
  readonly provider: string;
  readonly modelId: string;
  readonly contextWindow?: number;
  readonly maxOutputTokens?: number;
}

/** One recorded call. Each call is one line, in the order in which the calls ended. */
export interface RecordedCall {
  readonly type: "call";
  readonly request: ModelRequest;
  /** Deltas of the streamed response. Absent if the response was not streamed. */
  readonly deltas?: readonly StreamedDelta[];
  readonly response?: ModelResponse;
  /** Error of a failed call, which has no response. */
  readonly error?: RecordedError;
}

/** The fields of an error that `classifyError` reads, so that the replayed error is classified the same. */
export interface RecordedError {
  readonly name: string;
  readonly message: string;
  readonly fields: JsonObject;
  readonly cause?: RecordedError;
}

const maxCauses = 4;
const maxText = 20_000;
/** Fields of a provider's error that may be recorded. They contain no request content, no address and no key. */
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
