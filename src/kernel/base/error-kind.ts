/** Why a model call failed. Kinds differ where the caller has to react differently. */
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
  /**
   * HTTP statuses that usually accompany the kind. Kinds share statuses, so a status alone does not identify a kind.
   */
  readonly status: readonly number[];
  readonly retryable: boolean;
  /**
   * What the caller may do. `compact` means: shorten the context before the retry, because the same request would fail
   * again.
   */
  readonly retry: "backoff" | "compact" | "never";
}

export const errorKinds: Readonly<Record<ErrorKind, ErrorPolicy>> = Object.freeze({
  /** The provider received too many requests or tokens in a short window. Wait, then retry. */
  rate_limit: policy([429], "backoff"),
  /** The provider has no capacity at the moment. Wait, then retry. */
  overloaded: policy([503, 529], "backoff"),
  /** The provider or the network connection to it failed. Retry. */
  server_error: policy([500, 502], "backoff"),
  /** No answer arrived in time, on either side. Retry. */
  timeout: policy([408, 504], "backoff"),
  /** The request exceeds what the model or the account accepts. Compact, then retry. */
  context_overflow: policy([400, 413], "compact"),
  /** The error was not recognised. Retry a few times, then report it. */
  unknown: policy([], "backoff"),
  /** The credential is missing, wrong or expired. Do not retry until it is replaced or refreshed. */
  auth: policy([401, 403], "never"),
  /**
   * The account, key or region is blocked, or lacks a permission. Do not retry; a refreshed credential does not help.
   */
  auth_permanent: policy([401, 403], "never"),
  /** Credit or a long-term quota is used up. Do not retry until it is paid or the quota period ends. */
  billing: policy([402, 429], "never"),
  /** The provider does not know the model, or the account has no access to it. Do not retry; choose another model. */
  model_not_found: policy([404], "never"),
  /** A content filter refused the prompt or the answer. Do not retry; the same content is refused again. */
  content_blocked: policy([400, 403], "never"),
  /** The provider rejects the request as malformed. Do not retry; fix the code that builds the request. */
  format_error: policy([400], "never"),
});

/**
 * Whether another model may succeed after a failure of this kind. A context overflow is compacted instead of sent to
 * another model.
 */
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
