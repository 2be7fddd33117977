import { CancellationError, type TaskId } from "../../kernel/index.ts";
import { pendingForever } from "../process/pending-forever.ts";
import type { CancellationScope } from "../task/cancellation-scope.ts";
import type { TaskRunner } from "../task/task-runner.ts";

/**
 * C1, B5: a task that is stopped while it waits for a child leaves when the child has left, which was stopped with it. Then the stop says what
 * the child had to show. Part of leaving: not journaled, and for no longer than the child is given. One that was not told to stop is not
 * waited for: somebody else's, or, where a deadline has passed and nobody was told so far, a child's that goes on until then.
 */
export async function withChildOutput(
  child: TaskId,
  stop: CancellationError,
  runner: TaskRunner,
  cancelScope: CancellationScope,
): Promise<CancellationError> {
  const { cancelled, outcome: known } = runner.state.task(child);
  if (cancelled === null && known === null) return stop;
  const left = Promise.withResolvers<undefined>();
  const call = runner.activity.beginCall();
  // What the child has open is left when this is, so that it comes to its end then, or after as long again.
  call.body = { abandon: () => (call.body = { abandon: () => left.resolve(undefined) }) };
  const outcome = await Promise.race([runner.host.whenEnded(child), left.promise]);
  runner.activity.endCall(call);
  if (runner.isDropped || cancelScope.isAbandoned) return pendingForever();
  if (outcome === undefined) return stop;
  const { reason, status, cause } = stop;
  const { output: childOutput } = outcome;
  return new CancellationError(reason, { status, childOutput, ...(cause !== undefined && { cause }) });
}
