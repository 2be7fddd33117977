/** The property names under which errors of providers, their SDKs, the AI SDK and the platform keep their facts. */

export const statusKeys: readonly string[] = [
  "statusCode",
  "status",
  // Ollama's client uses this name.
  "status_code",
  // Bodies of Google and OpenRouter use this name.
  "code",
];

/** Properties that hold short identifiers. */
export const labelKeys: readonly string[] = [
  "name",
  "code",
  "type",
  "status",
  // Google's error details use this name.
  "reason",
  "quotaId",
  // OpenRouter's `metadata` uses this name.
  "error_type",
  "limit_source",
  // Answers that a filter withheld, which are not always thrown as errors.
  "blockReason",
  "finishReason",
  "finish_reason",
  "stop_reason",
];

/** Properties that hold sentences, or JSON in a string. */
export const textKeys: readonly string[] = [
  "message",
  // Ollama sends `{ error: "…" }`.
  "error",
  "responseBody",
  "body",
  "data",
  "detail",
  "error_message",
  // OpenRouter: the text of the upstream provider.
  "raw",
];

export const headerKeys: readonly string[] = ["responseHeaders", "headers"];

/**
 * Properties whose values are searched, those nearest to the final failure first. None of them holds what the caller
 * sent: a prompt that quotes an error must not decide the kind.
 */
export const childKeys: readonly string[] = [
  // The AI SDK's `RetryError` uses this name.
  "lastError",
  "error",
  "data",
  "body",
  "responseBody",
  "response",
  "metadata",
  "raw",
  "details",
  // The package `@google/generative-ai` uses this name.
  "errorDetails",
  "violations",
  // Azure uses this name.
  "innererror",
  "promptFeedback",
  "candidates",
  "cause",
];
