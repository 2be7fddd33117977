import {
  Fault,
  isMarkedFinal,
  JsonDigest,
  MiddlewareTermination,
  retryDelayMs,
  reviveFault,
  sealedOutcome,
  type Failure,
  type JsonValue,
  type StepAddress,
  type StepRetry,
} from "../../kernel/index.ts";
import { isFinalFault } from "../journal/task-end.ts";
import type { StepIdentity } from "../journal/step-identity.ts";
import { attemptAddress, attemptName, retryWait } from "../journal/wait-names.ts";
import type { ActiveStep } from "../task/active-step.ts";
import type { StepExecutor } from "../task/step-executor.ts";
import { isOutcome } from "../journal/recorded-faults.ts";
import { awaitName } from "./messages.ts";

/** The record of a failed attempt. Times are in epoch milliseconds. */
interface FailedAttempt {
  /** When the first attempt started. */
  readonly from: number;
  /** When the next attempt starts. */
  readonly nextAt: number;
  readonly failure: Failure;
}

/** One attempt of a step. */
export interface Attempt {
  /** Attempts count from 1. */
  readonly number: number;
  /** Whether the body was abandoned, because it took too long. */
  isAbandoned: boolean;
}

/**
 * J5: the attempts of a step. If another attempt follows a failed one, the failed one is recorded below the step,
 * with the time of the next attempt. After a crash, or if the run was dropped from memory, the next owner continues
 * with that attempt at that time.
 */
export class StepAttempts {
  readonly #steps: StepExecutor;
  readonly #open: ActiveStep;
  readonly #name: string;
  /** `undefined`: the step has one attempt. */
  readonly #retry: StepRetry | undefined;
  readonly #failed: FailedAttempt[];
  /** When the first attempt started. */
  #from = 0;

  /** `failed` are the earlier attempts that `takeAttempts` returned. */
  constructor(
    steps: StepExecutor,
    open: ActiveStep,
    name: string,
    retry: StepRetry | undefined,
    failed: FailedAttempt[],
  ) {
    this.#steps = steps;
    this.#open = open;
    this.#name = name;
    this.#retry = retry;
    this.#failed = failed;
  }

  /** Settles at the time of the next attempt. Returns `undefined` if that time has already passed. */
  untilNext(): Promise<void> | undefined {
    const last = this.#failed.at(-1);
    if (last === undefined || last.nextAt <= this.#open.runner.worker.clock.now()) return undefined;
    return restUntil(this.#open, last.nextAt);
  }

  next(): Attempt {
    if (this.#retry !== undefined) this.#from = this.#failed[0]?.from ?? this.#open.runner.worker.clock.now();
    return { number: this.#failed.length + 1, isAbandoned: false };
  }

  /**
   * Returns the scope of the steps inside the body. Each attempt of a step that is retried has its own scope, so
   * that it does not see records of other attempts.
   */
  scopeOf({ number }: Attempt): StepAddress {
    const { address } = this.#open;
    return this.#retry === undefined ? address : attemptAddress(address, number);
  }

  /** Records a failed attempt. Throws the error of the step if no other attempt may follow. */
  fail(attempt: Attempt, error: unknown): void {
    const open = this.#open;
    const retry = this.#retry;
    if (retry === undefined) throw error;
    const fault = Fault.from(error);
    if (isOver(open) || !isOutcome(fault)) throw error;
    const { runner, address } = open;
    const { clock, random } = runner.worker;
    const { number } = attempt;
    const delayMs = Math.ceil(retryDelayMs(number, retry, random));
    const nextAt = clock.now() + delayMs;
    const isLast =
      number >= retry.maxAttempts ||
      (retry.maxMs !== null && nextAt > this.#from + retry.maxMs) ||
      !mayRetry(fault, error);
    if (isLast) throw number === 1 ? error : withAttempts(fault, this.#failed);
    const failure = fault.toJSON();
    open.emit({ type: "step_retry", data: { name: this.#name, attempt: number, delayMs, failure } });
    const value: FailedAttempt = { from: this.#from, nextAt, failure };
    const record = sealedOutcome(value as unknown as JsonValue);
    runner.journal.record(identityOf(address, number), record, open.takeEvents(0));
    // W1: what the abandoned body has taken returns to its queue, and its children are cancelled.
    if (attempt.isAbandoned) this.#steps.abandon({ step: this.scopeOf(attempt), settled: [] });
    this.#failed.push(value);
    // G4: the next attempt is a call of its own, which does not start if the engine has ended the execution meanwhile.
    open.end();
  }
}

/**
 * Removes from the journal the failed attempts of a step that earlier owners of the run have recorded, and returns
 * them in order. If the options of the step have changed since then, the next attempt still has the next number and
 * starts at the recorded time.
 */
export function takeAttempts({ runner }: StepExecutor, address: StepAddress): FailedAttempt[] {
  const failed: FailedAttempt[] = [];
  if (!runner.journal.hasRecorded(address)) return failed;
  for (;;) {
    const found = runner.journal.find(identityOf(address, failed.length + 1));
    if (found?.kind !== "ok") return failed;
    failed.push(found.value as unknown as FailedAttempt);
  }
}

function identityOf(step: StepAddress, attempt: number): StepIdentity {
  const address = attemptAddress(step, attempt);
  return { address, kind: "value", name: attemptName, digest: JsonDigest.ofNull };
}

/**
 * Waits until the next attempt. During the wait the run holds neither a call nor a slot, and may be dropped from
 * memory.
 */
async function restUntil(open: ActiveStep, at: number): Promise<void> {
  await awaitName(open.runner, open.cancelScope, retryWait(open.address), () => at);
}

/** Whether the task must not start another attempt: it was cancelled, or this process has dropped it. */
function isOver({ runner, cancelScope }: ActiveStep): boolean {
  return runner.isDropped || cancelScope.isAbandoned || cancelScope.token.cancelled;
}

function mayRetry(fault: Fault, error: unknown): boolean {
  return !isFinalFault(fault) && !(fault instanceof MiddlewareTermination) && !isMarkedFinal(error);
}

/** Returns the error of the last attempt, with a list of all attempts in its details. */
function withAttempts(last: Fault, failed: readonly FailedAttempt[]): Fault {
  const failure = last.toJSON();
  const attempts = [...failed.map((each) => each.failure), failure].map(({ code, message }, index) => ({
    attempt: index + 1,
    code,
    message,
  }));
  return reviveFault({ ...failure, details: { ...failure.details, attempts } });
}
