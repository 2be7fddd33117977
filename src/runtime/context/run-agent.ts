import {
  CancellationError,
  Fault,
  finishReasonOf,
  isFaultCode,
  isMarkedFinal,
  outcomeStatus,
  readProperty,
  reviveFault,
  sealJson,
  type EventDraft,
  type Failure,
  type FinishReason,
  type JsonValue,
  type StepAddress,
  type StopReason,
  type TaskOutcome,
} from "../../kernel/index.ts";
import { undoWork } from "./compensation.ts";
import { ContinueAsNew } from "./continue-as-new.ts";
import { TaskContext } from "./task-context.ts";
import { cancelledOutcome, faultStopReason, isFinalFault, outputAt } from "../journal/task-end.ts";
import { TaskInboxView } from "./task-inbox.ts";
import type { TaskRunner } from "../task/task-runner.ts";
import { joinWait } from "../journal/wait-names.ts";
import { restartDelayMs } from "../process/run-retry.ts";

/** Outcome of a task's code. E4: `events` were emitted after its last step and are committed together with its end. */
export type CodeOutcome = { readonly events: readonly EventDraft[] } & (
  | {
      readonly kind: "ended";
      readonly outcome: TaskOutcome;
      /** J5: addresses of the records whose fault ended the code. */
      readonly endedOn: readonly StepAddress[];
    }
  /** The code threw an error that is not recorded; a restart may succeed. */
  | { readonly kind: "crashed"; readonly fault: Fault }
  /** J8: the code called `continueAsNew`. */
  | { readonly kind: "continues"; readonly input: JsonValue }
);

/** Runs the code of a task to its end. Never settles if the runner is dropped. */
export async function runAgentCode(runner: TaskRunner): Promise<CodeOutcome> {
  const { agent, host } = runner;
  const ctx = new TaskContext(runner, runner.task.journal);
  const code = (): Promise<unknown> => agent.run(ctx, inboxOf(runner, ctx));
  try {
    const opening = host.live?.open();
    if (opening !== undefined) await runner.activity.whileAlive(opening);
    if (agent.runKind === "workflow") return await runWorkflow(runner, ctx, code);
    const ending = await runner.run(code);
    if ("error" in ending) throw ending.error;
    return await returned(runner, ctx, ending.value);
  } catch (error) {
    return outcomeOfError(runner, error, ctx.takeEvents());
  }
}

/** Returns the outcome of code that returned. The task ends when the children for which it waits have ended. */
async function returned(runner: TaskRunner, ctx: TaskContext, value: unknown): Promise<CodeOutcome> {
  const { agent, cancelScope, state, host, taskId, worker } = runner;
  const output = (value ?? null) as JsonValue;
  const where = `the output of ${agent.id}`;
  sealJson(output, where);
  worker.sizes.assert(output, where);
  const children = state.liveChildren(taskId, "wait");
  if (children.length > 0) {
    const ended = Promise.all(children.map((each) => host.whenEnded(each)));
    await runner.activity.waitFor(cancelScope, ended, { name: joinWait(children) });
  }
  return { kind: "ended", outcome: outcomeOf(runner, output), endedOn: none, events: ctx.takeEvents() };
}

/** Runs the code of a workflow. If it ends without success, its compensations run before the task ends. */
async function runWorkflow(
  runner: TaskRunner,
  ctx: TaskContext,
  code: () => Promise<unknown>,
): Promise<CodeOutcome> {
  const undone = async (ended: CodeOutcome): Promise<CodeOutcome> => {
    const found = await undoWork(
      runner,
      outcomeToUndo(runner, ended),
      (scope, cancelScope) => new TaskContext(runner, scope, cancelScope),
    );
    if (found === undefined) return ended;
    const { outcome, events } = found;
    return { kind: "ended", outcome, endedOn: none, events: [...ended.events, ...events] };
  };
  const ownCode = async (): Promise<unknown> => {
    try {
      return await code();
    } finally {
      runner.hasReturned = true;
    }
  };
  const work = async (): Promise<CodeOutcome> => {
    let ended: CodeOutcome;
    try {
      ended = await returned(runner, ctx, await ownCode());
    } catch (error) {
      ended = outcomeOfError(runner, error, ctx.takeEvents());
    }
    return undone(ended);
  };
  try {
    const ending = await runner.run(work);
    if ("error" in ending) throw ending.error;
    return ending.value as CodeOutcome;
  } catch (error) {
    if (!(error instanceof CancellationError) || runner.hasEnded) throw error;
    // The code ignored its cancellation and was abandoned.
    return undone(outcomeOfError(runner, error, ctx.takeEvents()));
  }
}

/**
 * Returns the outcome of a workflow whose work must be undone. `undefined` if it completed, starts again, or
 * stopped at its budget, because it can then be topped up. A call of an object cannot be topped up (L19).
 */
function outcomeToUndo(
  { task, worker, output, host }: TaskRunner,
  ended: CodeOutcome,
): TaskOutcome | undefined {
  if (ended.kind === "continues") return undefined;
  if (ended.kind === "crashed")
    return restartDelayMs(task.crashes + 1, worker.runRetry) === null
      ? failedOutcome(ended.fault, output)
      : undefined;
  const { outcome } = ended;
  const status = outcomeStatus(outcome);
  const isStopped = status === "budget_exhausted" && host.flow?.object === undefined;
  return status === "completed" || isStopped ? undefined : outcome;
}

const none: readonly never[] = [];

function inboxOf(runner: TaskRunner, ctx: TaskContext): TaskInboxView {
  const { journal, record } = runner.task;
  return new TaskInboxView(ctx, runner, journal === 0 ? record.messages : none);
}

function outcomeOf(runner: TaskRunner, output: JsonValue): TaskOutcome {
  const { stop, report } = runner;
  if (stop !== undefined) return reported(runner, cancelledOutcome(stop, output));
  const completed = { status: "completed", output, failure: null } as const;
  const { interruption } = report;
  return reported(runner, interruption === undefined ? completed : { ...completed, interruption });
}

function outcomeOfError(runner: TaskRunner, error: unknown, events: readonly EventDraft[]): CodeOutcome {
  if (error instanceof ContinueAsNew) return { kind: "continues", input: error.state, events };
  const fault = faultOf(error);
  const stop = fault instanceof CancellationError ? fault : runner.stop;
  if (stop !== undefined) {
    const outcome = reported(runner, cancelledOutcome(stop, runner.output));
    return { kind: "ended", outcome, endedOn: [], events };
  }
  const endedOn = runner.journal.originsOf(error);
  const isWorkflow = runner.agent.runKind === "workflow";
  if (endedOn.length === 0 && !isFinalFault(fault) && !isMistake(error, isWorkflow))
    return { kind: "crashed", fault, events };
  const outcome = reported(runner, failedOutcome(fault, outputAt(fault, runner.output)));
  return { kind: "ended", outcome, endedOn, events };
}

/**
 * Returns the fault for an error that left the code. Code may throw the reason of an item of `ctx.map`, which is
 * the JSON of a fault.
 */
function faultOf(error: unknown): Fault {
  const code = error instanceof Error ? undefined : readProperty(error, "code");
  return typeof code === "string" && isFaultCode(code) ? reviveFault(error as Failure) : Fault.from(error);
}

/** Adds to an outcome what the task has reported: its metadata, its work and the finish reason of its output. */
function reported(runner: TaskRunner, outcome: TaskOutcome): TaskOutcome {
  const { metadata, work } = runner.report;
  const finishReason = finishReasonAt(runner, outcome.failure);
  return {
    ...outcome,
    ...(finishReason !== null && { finishReason }),
    ...(metadata !== undefined && { metadata }),
    ...(work !== undefined && { work }),
  };
}

/**
 * Returns the finish reason of a task. If a reply was withheld or cut, the fault contains the reason of that reply.
 */
function finishReasonAt({ report, stopReason }: TaskRunner, failure: Failure | null): FinishReason | null {
  const failed = failure?.details?.[faultStopReason] as StopReason | undefined;
  if (failed !== undefined) return finishReasonOf(failed);
  if (report.finishReason !== undefined) return report.finishReason;
  return stopReason === undefined ? null : finishReasonOf(stopReason);
}

export function failedOutcome(fault: Fault, output: JsonValue = null): TaskOutcome {
  return { status: "failed", output, failure: fault.toJSON() };
}

/**
 * Whether a restart would not help, because the code is wrong or the code that threw says so. The code of a
 * workflow is always restarted, so that its runs continue as soon as the corrected code is deployed.
 */
function isMistake(error: unknown, isWorkflow: boolean): boolean {
  return (!isWorkflow && isProgrammingError(error)) || isMarkedFinal(error);
}

/**
 * Whether an error means that the code is wrong, so that a restart on the same records would fail again. An error
 * with a cause does not count, because it may come from a failed `fetch`. `SyntaxError` (a parse error of data) and
 * `RangeError` (lack of memory) do not count either, because they may not occur again.
 */
function isProgrammingError(error: unknown): boolean {
  const thrown = Fault.is(error) && error.code === "internal" ? error.cause : error;
  return mistakes.some((Mistake) => thrown instanceof Mistake && thrown.cause === undefined);
}

const mistakes = [TypeError, ReferenceError] as const;
