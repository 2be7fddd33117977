/** Where errors of the providers, their SDKs, the AI SDK and the platform keep what can be known of them. */

export const statusKeys: readonly string[] = [
  "statusCode",
  "status",
  // Ollama's client
  "status_code",
  // Google and OpenRouter bodies
  "code",
];

/** Short identifiers. */
export const labelKeys: readonly string[] = [
  "name",
  "code",
  "type",
  "status",
  // Google's error details
  "reason",
  "quotaId",
  // OpenRouter's `metadata`
  "error_type",
  "limit_source",
  // answers withheld by a filter, which are not always thrown as errors
  "blockReason",
  "finishReason",
  "finish_reason",
  "stop_reason",
];

/** Sentences, or JSON in a string. */
export const textKeys: readonly string[] = [
  "message",
  // Ollama: `{ error: "…" }`
  "error",
  "responseBody",
  "body",
  "data",
  "detail",
  "error_message",
  // OpenRouter: the upstream provider's own words
  "raw",
];

export const headerKeys: readonly string[] = ["responseHeaders", "headers"];

/**
 * What is walked into, nearest to the final failure first. Nothing the caller sent is among these: a prompt that
 * quotes an error must not decide the kind.
 */
export const childKeys: readonly string[] = [
  // AI SDK `RetryError`
  "lastError",
  "error",
  "data",
  "body",
  "responseBody",
  "response",
  "metadata",
  "raw",
  "details",
  // `@google/generative-ai`
  "errorDetails",
  "violations",
  // Azure
  "innererror",
  "promptFeedback",
  "candidates",
  "cause",
];
