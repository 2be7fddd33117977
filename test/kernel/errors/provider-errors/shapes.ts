import type { ErrorKind } from "../../../../src/kernel/base/fault.ts";

/** Expected kind, name of the case, and the error as the provider or SDK creates it. */
export type ProviderError = readonly [kind: ErrorKind, name: string, error: unknown];

type Details = readonly object[];

export const openAiBody = (message: string, type: string | null, code: string | null = null): object => ({
  error: { message, type, param: null, code },
});

export const anthropicBody = (type: string, message: string): object => ({
  type: "error",
  error: { type, message },
  request_id: "req_011CUwZTS7TYAH8UyTro83sP",
});

export const googleBody = (code: number, status: string, message: string, details?: Details): object => ({
  error: { code, message, status, ...(details === undefined ? {} : { details }) },
});

export const openRouterBody = (code: number, message: string, metadata?: object): object => ({
  error: { message, code, ...(metadata === undefined ? {} : { metadata }) },
  user_id: "user_2vG8JHNDDYbHoK4GuFqOWMKUs0f",
});

/**
 * An `APICallError` of the AI SDK. Its request quotes error codes on purpose, because `classifyError` must not read the
 * request.
 */
export function apiCallError(statusCode: number, body: object, responseHeaders: object = {}): Error {
  const { error } = body as { error?: { message?: string } | string };
  return Object.assign(new Error(typeof error === "object" ? error.message : "Request failed"), {
    name: "AI_APICallError",
    url: "https://api.example.com/v1/chat",
    requestBodyValues: { messages: [{ content: "explain context_length_exceeded and insufficient_quota" }] },
    statusCode,
    responseHeaders,
    responseBody: JSON.stringify(body),
    isRetryable: statusCode === 429 || statusCode >= 500,
    data: body,
  });
}

/** An `APIError` of `openai`, which copies the fields of the body's `error` to the error. */
export function openAiSdkError(status: number, body: object, headers: object = {}): Error {
  const { error } = body as { error: { message: string; code: unknown; type: unknown } };
  const { code, type } = error;
  return Object.assign(new Error(`${status} ${error.message}`), {
    status,
    headers,
    error,
    code,
    param: null,
    type,
  });
}

/** An `APIError` of `@anthropic-ai/sdk`, which has the whole body in `error` and, as JSON, in its message. */
export function anthropicSdkError(status: number, body: object, headers: object = {}): Error {
  return Object.assign(new Error(`${status} ${JSON.stringify(body)}`), { status, headers, error: body });
}

/** An `ApiError` of `@google/genai`, whose message is JSON that contains the body as a JSON string. */
export function googleSdkError(code: number, statusText: string, body: object): Error {
  const message = JSON.stringify({
    error: { message: JSON.stringify(body, null, 2), code, status: statusText },
  });
  return Object.assign(new Error(message), { name: "ApiError", status: code });
}

/** A `ResponseError` of `ollama`. */
export function ollamaClientError(statusCode: number, error: string): Error {
  return Object.assign(new Error(error), { name: "ResponseError", error, status_code: statusCode });
}

export function fetchFailed(cause: object): Error {
  return new TypeError("fetch failed", { cause });
}

export function systemError(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}

export const quotaFailure = (...quotaIds: readonly string[]): object => ({
  "@type": "type.googleapis.com/google.rpc.QuotaFailure",
  violations: quotaIds.map((quotaId) => ({
    quotaMetric: "generativelanguage.googleapis.com/generate_content_free_tier_requests",
    quotaId,
    quotaDimensions: { location: "global", model: "gemini-2.5-flash" },
  })),
});

export const retryInfo = (retryDelay: string): object => ({
  "@type": "type.googleapis.com/google.rpc.RetryInfo",
  retryDelay,
});

export const errorInfo = (reason: string): object => ({
  "@type": "type.googleapis.com/google.rpc.ErrorInfo",
  reason,
  domain: "googleapis.com",
  metadata: { service: "generativelanguage.googleapis.com" },
});
