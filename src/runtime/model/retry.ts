import {
  CancellationError,
  classifyError,
  Fault,
  mergeRetrySettings,
  modelFaultCode,
  retryDelayMs,
  type ClassifiedError,
  type Model,
} from "../../kernel/index.ts";
import type { ActiveStep } from "../task/active-step.ts";
import type { FailedAttempt } from "./candidate-models.ts";
import type { Grant } from "./reservation.ts";

/** Error codes of the platform for a connection that was never established. */
const notConnected: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
]);

/** What the provider had already sent when an attempt failed. */
export interface ReceivedPart {
  /** Number of stream parts. */
  readonly count: number;
  /** Text that may be shown to the caller. */
  readonly text: string;
}

/**
 * B3: charges a failed attempt in full as unreported, or refunds its reservation if the provider cannot have billed it.
 * Throws if the step was cancelled, or if the failure is one that no further attempt can fix.
 */
export function settleFailedAttempt(
  step: ActiveStep,
  model: Model,
  grant: Grant,
  cause: unknown,
  received: ReceivedPart,
): FailedAttempt {
  const { runner, cancelScope } = step;
  const error = classifyError(cause, { now: runner.worker.clock.now() });
  // An attempt that was refused before any body, or never sent, was not billed. Any other attempt may have been.
  const isUnsent = Fault.is(cause) && !(cause instanceof CancellationError);
  const isFree = error.refused || isUnsent || notConnected.has(error.providerCode ?? "");
  const isCharged = received.count > 0 || !isFree;
  const cancellation = cancelScope.token.error;
  // A fault whose code does not start with `model_` is about the request or the configuration.
  const isOwnFault = Fault.is(cause) && !cause.code.startsWith("model_");
  const isFailed = cancellation === undefined && !isOwnFault;
  if (isCharged) runner.host.ledger.lose(runner.taskId, grant.id, isFailed);
  else
    runner.host.ledger.apply(runner.taskId, {
      type: "refund",
      id: grant.id,
      ...(isFailed && { failed: true }),
    });
  step.end();
  if (cancellation !== undefined)
    throw received.text === "" ? cancellation : withPartialText(cancellation, received.text);
  if (isOwnFault) throw cause;
  return { model, error, cause, isShown: received.count > 0 };
}

function withPartialText({ reason, status, cause }: CancellationError, partial: string): CancellationError {
  return new CancellationError(reason, { status, partial, ...(cause !== undefined && { cause }) });
}

export function emitFallback(
  { runner }: ActiveStep,
  from: Model,
  to: Model,
  { kind, message }: ClassifiedError,
): void {
  runner.journal.emit({ type: "model_fallback", data: { from: idOf(from), to: idOf(to), kind, message } });
}

function idOf({ provider, modelId }: Model): { readonly provider: string; readonly modelId: string } {
  return { provider, modelId };
}

/**
 * Creates the fault of a failed model call. Its message and its details name the provider, the model and the HTTP
 * status.
 */
export function modelFault({ model, error, cause }: FailedAttempt): Fault {
  const { kind, status, message } = error;
  const { provider, modelId } = model;
  const name = `${provider}/${modelId} `;
  const failed = status === undefined ? "failed" : `failed with HTTP ${status}`;
  // A timeout of an attempt names the model itself.
  const text = message.startsWith(name) ? message : `${name}${failed}: ${message}`;
  return new Fault(modelFaultCode(kind), text, {
    cause,
    details: { provider, modelId, ...(status !== undefined && { status }) },
  });
}

/**
 * Adds the last error of a model to the fault of a deadline that ended its next attempt or the wait for it, because
 * the deadline alone does not say why no answer arrived. Returns any other fault unchanged.
 */
export function withLastError(fault: unknown, last: Fault | undefined): unknown {
  if (last === undefined || !(fault instanceof CancellationError) || fault.status !== "deadline_exceeded")
    return fault;
  const { reason, status, partial } = fault;
  return new CancellationError(`${reason}; the last error was: ${last.message}`, {
    status,
    partial,
    cause: last,
  });
}

/**
 * Returns the milliseconds to wait before retry number `retry`, counted from 1. Emits `retry_end` for the previous
 * retry and `retry_start` for this one. Throws if the failure must not be retried, or not again.
 */
export function nextRetryDelayMs(
  step: ActiveStep,
  retry: number,
  failed: FailedAttempt,
  fault: Fault,
): number {
  const { kind, retryable, retryAfterMs } = failed.error;
  const { runner } = step;
  const { worker, agent } = runner;
  const settings = agent.retry === undefined ? worker.retry : mergeRetrySettings(worker.retry, agent.retry);
  const previousEnd = { type: "retry_end", data: { attempt: retry - 1, success: false } } as const;
  if (!settings.enabled || !retryable || fault.retry !== "backoff" || retry > settings.maxRetries) {
    if (retry > 1) step.emit(previousEnd);
    throw fault;
  }
  if (retry > 1) runner.journal.emit(previousEnd);
  const delayMs = retryDelayMs(retry, settings, worker.random, retryAfterMs);
  const start = { attempt: retry, maxAttempts: settings.maxRetries, delayMs, kind, message: fault.message };
  runner.journal.emit({ type: "retry_start", data: start });
  return delayMs;
}

/** Waits between two attempts. The wait is not journaled, because the attempts of a call are one step. */
export async function waitForRetry({ runner, cancelScope }: ActiveStep, delayMs: number): Promise<void> {
  const { clock } = runner.worker;
  const delay = Promise.withResolvers<void>();
  const cancel = clock.schedule(clock.now() + delayMs, delay.resolve);
  try {
    await runner.activity.pauseFor(cancelScope, delay.promise);
  } finally {
    cancel();
  }
}
