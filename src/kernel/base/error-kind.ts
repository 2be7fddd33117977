/** Why a call to a model failed, reduced to what the caller does about it. */
export type ErrorKind =
  | "rate_limit"
  | "overloaded"
  | "server_error"
  | "timeout"
  | "context_overflow"
  | "unknown"
  | "auth"
  | "auth_permanent"
  | "billing"
  | "model_not_found"
  | "content_blocked"
  | "format_error";

export interface ErrorPolicy {
  /** HTTP statuses the kind usually arrives with. Kinds share them, so a status alone never names a kind. */
  readonly status: readonly number[];
  readonly retryable: boolean;
  /** `compact`: shorten the context first, then retry; the same request would fail again. */
  readonly retry: "backoff" | "compact" | "never";
}

export const errorKinds: Readonly<Record<ErrorKind, ErrorPolicy>> = Object.freeze({
  /** Too many requests or tokens in a short window: wait, then retry. */
  rate_limit: policy([429], "backoff"),
  /** The provider has no capacity just now: wait, then retry. */
  overloaded: policy([503, 529], "backoff"),
  /** The provider or the network to it failed: retry. */
  server_error: policy([500, 502], "backoff"),
  /** No answer in time, whoever gave up first: retry. */
  timeout: policy([408, 504], "backoff"),
  /** The request is larger than the model or the account takes: compact, then retry. */
  context_overflow: policy([400, 413], "compact"),
  /** Nothing recognised: retry a few times, then show it to a person. */
  unknown: policy([], "backoff"),
  /** The credential is missing, wrong or expired: stop until it is replaced or refreshed. */
  auth: policy([401, 403], "never"),
  /** The account, key or place is barred, or lacks a right: stop; a refresh will not help. */
  auth_permanent: policy([401, 403], "never"),
  /** Money or a long-window quota has run out: stop until someone pays or the window ends. */
  billing: policy([402, 429], "never"),
  /** The model is unknown to the provider or closed to this account: stop and choose another. */
  model_not_found: policy([404], "never"),
  /** A filter refused the prompt or the answer: stop; the same words are refused again. */
  content_blocked: policy([400, 403], "never"),
  /** The provider does not accept the request as built: stop and fix the code that built it. */
  format_error: policy([400], "never"),
});

/** Whether another model may answer where one failed so. A conversation that is too long is compacted, not taken elsewhere. */
export function mayBeAnsweredElsewhere(kind: ErrorKind): boolean {
  return !metEverywhere.has(kind);
}

const metEverywhere: ReadonlySet<ErrorKind> = new Set<ErrorKind>([
  "content_blocked",
  "context_overflow",
  "format_error",
]);

function policy(status: readonly number[], retry: ErrorPolicy["retry"]): ErrorPolicy {
  return Object.freeze({ status: Object.freeze([...status]), retryable: retry !== "never", retry });
}
