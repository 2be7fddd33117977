import { CancellationError, type TaskId } from "../../kernel/index.ts";
import { pendingForever } from "../process/pending-forever.ts";
import type { CancellationScope } from "../task/cancellation-scope.ts";
import type { TaskRunner } from "../task/task-runner.ts";

/**
 * C1, B5: waits for a cancelled child and adds its output to the cancellation. Both are cancelled at the same time, so
 * the child's output is available shortly afterwards. The wait is not journaled and not longer than the child's own
 * grace period. It does not wait for a child that was not itself cancelled, such as another parent's child or one whose
 * own deadline is later.
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
  // The child's calls are abandoned at the same time as this one, so the child ends then, or after a second grace
  // period.
  call.body = { abandon: () => (call.body = { abandon: () => left.resolve(undefined) }) };
  const outcome = await Promise.race([runner.host.whenEnded(child), left.promise]);
  runner.activity.endCall(call);
  if (runner.isDropped || cancelScope.isAbandoned) return pendingForever();
  if (outcome === undefined) return stop;
  const { reason, status, cause } = stop;
  const { output: childOutput } = outcome;
  return new CancellationError(reason, { status, childOutput, ...(cause !== undefined && { cause }) });
}
