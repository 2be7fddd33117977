import { errorKinds, type ErrorKind } from "./error-kind.ts";

/** What may be done about a fault: nothing, the same again after a pause, or the same again on a compacted context. */
export type Retry = "never" | "backoff" | "compact";

/** A model call failed; the tail is its kind (`classifyError`). */
export type ModelFaultCode = `model_${ErrorKind}`;

const retryByCode = {
  /** Bad input; the message says what, where and what to do. */
  invalid_argument: "never",
  /** A stored or sent value is not JSON (J10). */
  not_json: "never",
  not_found: "never",
  already_exists: "never",
  /** The session is in an invocation or compaction; details name the run and what it waits for (S5). */
  agent_busy: "backoff",
  /** Stopped by someone, or past the deadline. `CancellationError`. */
  cancelled: "never",
  /** A cap on tokens, dollars, turns or seats. `BudgetExhaustedError`. */
  budget_exhausted: "never",
  /** A guardrail or middleware stopped the run. `MiddlewareTermination`. */
  guardrail_tripped: "never",
  permission_denied: "never",
  /** A cost cap stands and the model has no known price (B4). */
  unknown_price: "never",
  /** Two journaled calls open at once in one scope (J2). */
  journal_ambiguous: "never",
  /** The code asks for another step than the journal recorded (J4). */
  journal_mismatch: "never",
  /** Another owner has the run; this one writes nothing and starts nothing (J3). */
  lease_lost: "never",
  /** The run was started by another version of its agent (J9). */
  version_mismatch: "never",
  tool_failed: "never",
  tool_not_found: "never",
  tool_timeout: "never",
  /** A child task or an asked agent ended without an answer. */
  child_failed: "never",
  /** `next` called while an earlier call was open, or after `process` returned. */
  middleware_misuse: "never",
  /** A package or program this feature needs is not there; the message says what to install. */
  dependency_missing: "never",
  unsupported: "never",
  /** The runtime, or the store, was closed: nothing comes of it any more here. */
  closed: "never",
  /** Locked or unreachable for now; nothing was written. */
  store_unavailable: "backoff",
  store_read_only: "never",
  store_full: "never",
  store_corrupt: "never",
  /** Anything thrown that is not a fault, and our own bugs. */
  internal: "never",
} as const satisfies Record<string, Retry>;

export type FaultCode = keyof typeof retryByCode | ModelFaultCode;

/** Codes that only their subclass of `Fault` may carry. */
export type SubclassCode = "cancelled" | "budget_exhausted" | "guardrail_tripped";

export function isFaultCode(value: unknown): value is FaultCode {
  if (typeof value !== "string") return false;
  return Object.hasOwn(retryByCode, value) || modelKind(value) !== undefined;
}

export function retryOf(code: FaultCode): Retry {
  const kind = modelKind(code);
  return kind === undefined ? retryByCode[code as keyof typeof retryByCode] : errorKinds[kind].retry;
}

function modelKind(code: string): ErrorKind | undefined {
  const kind = code.startsWith("model_") ? code.slice("model_".length) : "";
  return Object.hasOwn(errorKinds, kind) ? (kind as ErrorKind) : undefined;
}
