import type { ActiveStep } from "./active-step.ts";
import type { TaskRunner } from "./task-runner.ts";
import { BudgetExhaustedError, type Exhaustion } from "../../kernel/index.ts";

/**
 * B1: throws if a provider billed above the reserved bound. The run then stops until it is topped up, and the tool
 * calls of the reply are not executed.
 */
export function stopAtOverrun(step: ActiveStep): void {
  const { overrun } = step.runner.state.ledger;
  if (overrun !== null) throw exhausted(step, overrun);
}

/** The call that a budget refuses. */
interface RefusedCall {
  readonly model?: { readonly provider: string; readonly modelId: string };
}

/**
 * Emits `budget_exhausted` and returns the error to throw. `isAsked` in its details says whether a question for a
 * top-up is open.
 */
export function exhausted(
  step: ActiveStep,
  exhaustion: Exhaustion,
  { model }: RefusedCall = {},
  isAsked = false,
): BudgetExhaustedError {
  const { dimension, limit, used, refused, cap, taskId } = exhaustion;
  const named = model && { provider: model.provider, modelId: model.modelId };
  step.emit({ type: "budget_exhausted", data: { ...exhaustion, ...(named && { model: named }) } });
  return new BudgetExhaustedError({
    dimension,
    limit,
    used,
    ...(refused && { refused }),
    ...(cap && { cap }),
    details: { taskId, ...(isAsked && { isAsked }) },
  });
}

/**
 * B5: whether the call of a task that does not fit into a budget waits for a top-up. The task to which the budget
 * belongs decides. There is no question if a spending cap is exhausted, if a bill exceeded its bound (B1), or if
 * the task is cancelled or was refused a top-up before.
 */
export function mayAsk(
  { state, task }: TaskRunner,
  { taskId, cap }: Pick<Exhaustion, "taskId" | "cap">,
): boolean {
  if (cap !== undefined || state.ledger.overrun !== null) return false;
  if (task.cancelled !== null || task.isDeclined) return false;
  return state.tasks.get(taskId)?.record.onBudget === "ask";
}

/** A call that may wait for a top-up. */
interface WaitingCall {
  readonly topUpWaitMs?: number | undefined;
  readonly onTopUpWait?: (() => boolean) | undefined;
}

/**
 * B5: resolves when the call may be tried again, because the budget was raised. Throws `budget_exhausted` if the
 * task does not ask, the person refuses, or no answer has come after `topUpWaitMs`.
 *
 * H1: during the wait the task holds no seat. If the process dies, the next owner finds the question and the pause
 * of the task in one commit. It executes no code of the task, and repeats the call after the top-up.
 */
export async function askOrStop(
  step: ActiveStep,
  exhaustion: Exhaustion,
  call: RefusedCall & WaitingCall = {},
): Promise<void> {
  const { runner, cancelScope } = step;
  const { clock } = runner.worker;
  if (!mayAsk(runner, exhaustion)) throw exhausted(step, exhaustion, call);
  runner.host.askForTopUp(runner.taskId, exhaustion);
  const { topUpWaitMs, onTopUpWait } = call;
  const isReachable = runner.worker.attendance.isAttended(runner.facts.runId);
  const waitMs = topUpWaitMs === undefined || (isReachable && onTopUpWait?.() !== false) ? topUpWaitMs : 0;
  if (waitMs === undefined) {
    await runner.activity.whenRecalled(cancelScope);
  } else if (waitMs > 0) {
    const over = Promise.withResolvers<void>();
    const cancel = clock.schedule(clock.now() + waitMs, over.resolve);
    try {
      await runner.activity.whenRecalled(cancelScope, over.promise);
    } finally {
      cancel();
    }
  }
  const { heldFor } = runner.state.headcount.tasks[runner.taskId] ?? {};
  if (heldFor !== undefined || runner.task.isDeclined)
    throw exhausted(step, exhaustion, call, heldFor !== undefined);
}
