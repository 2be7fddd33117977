import { errorKinds, type ErrorKind } from "./error-kind.ts";

/** How a caller may react to a fault: not retry, retry after a pause, or retry with a compacted context. */
export type Retry = "never" | "backoff" | "compact";

/** A failed model call: the kind that `classifyError` determined, after `model_` unless the kind begins with it. */
export type ModelFaultCode = ErrorKind extends infer Kind extends ErrorKind
  ? Kind extends `model_${string}`
    ? Kind
    : `model_${Kind}`
  : never;

const retryByCode = {
  /** The caller passed invalid input. The message says what is wrong, where, and how to fix it. */
  invalid_argument: "never",
  /** J10: a value to be stored or sent is not JSON. */
  not_json: "never",
  /** A value to be stored or sent is larger than `maxValueBytes` of the runtime. */
  too_large: "never",
  not_found: "never",
  already_exists: "never",
  /** S5: the session is busy with an invocation or a compaction. The details name the run and what it waits for. */
  agent_busy: "backoff",
  /** The task was cancelled or its deadline passed (`CancellationError`). */
  cancelled: "never",
  /** A cap on tokens, dollars, turns or seats was reached (`BudgetExhaustedError`). */
  budget_exhausted: "never",
  /** A guardrail or middleware stopped the run (`MiddlewareTermination`). */
  guardrail_tripped: "never",
  /** A request to a server carries no valid token or cookie. */
  unauthenticated: "never",
  permission_denied: "never",
  /** A caller sent more requests, or opened more streams, than a server allows. */
  rate_limited: "backoff",
  /** B4: the task has a cost cap and the model has no known price. */
  unknown_price: "never",
  /** J2: a scope made a second journaled call while the first was in flight. */
  journal_ambiguous: "never",
  /** J4: on replay, the code requested a different step than the journal recorded. */
  journal_mismatch: "never",
  /** J3: another worker owns the run. This worker writes nothing and starts no effect. */
  lease_lost: "never",
  /** J9: the run was started by another version of its agent. */
  version_mismatch: "never",
  /** G5: the store records another kind of engine than that of the runtime. */
  engine_mismatch: "never",
  /** The engine of the runtime cannot be reached. What was submitted is stored, and is driven when the engine is back. */
  engine_unavailable: "backoff",
  /** The run ended its worker's process several times in a row without progress. No worker drives it again until it is resumed. */
  crash_loop: "never",
  /** The run was submitted with a live context, and this worker has no factory for it. No step was executed. */
  context_missing: "never",
  tool_failed: "never",
  tool_not_found: "never",
  tool_timeout: "never",
  /** A child task, or an agent that was asked, ended without an answer. */
  child_failed: "never",
  /** Middleware called `next` while an earlier call was in flight, or after `process` had returned. */
  middleware_misuse: "never",
  /** A package or program that the feature needs is not installed. The message names it. */
  dependency_missing: "never",
  unsupported: "never",
  /** The runtime or the store is closed and accepts no more calls. */
  closed: "never",
  /** The store is locked or unreachable for the moment. A write whose answer was lost may have taken effect. */
  store_unavailable: "backoff",
  store_read_only: "never",
  store_full: "never",
  store_corrupt: "never",
  /** Code threw something other than a fault, or Reeve has a bug. */
  internal: "never",
} as const satisfies Record<string, Retry>;

export type FaultCode = keyof typeof retryByCode | ModelFaultCode;

/** Fault codes that only their own subclass of `Fault` may carry. */
export type SubclassCode = "cancelled" | "budget_exhausted" | "guardrail_tripped";

export function isFaultCode(value: unknown): value is FaultCode {
  if (typeof value !== "string") return false;
  return Object.hasOwn(retryByCode, value) || modelErrorKind(value) !== undefined;
}

export function retryOf(code: FaultCode): Retry {
  const kind = modelErrorKind(code);
  return kind === undefined ? retryByCode[code as keyof typeof retryByCode] : errorKinds[kind].retry;
}

/** Returns the fault code of a failed model call. */
export function modelFaultCode(kind: ErrorKind): ModelFaultCode {
  return (kind.startsWith("model_") ? kind : `model_${kind}`) as ModelFaultCode;
}

/** Returns the kind of a failed model call by its fault code. `undefined` for any other code. */
export function modelErrorKind(code: string): ErrorKind | undefined {
  return (Object.keys(errorKinds) as ErrorKind[]).find((kind) => modelFaultCode(kind) === code);
}
