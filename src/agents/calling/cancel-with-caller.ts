import { CancellationError, type RunHandle } from "../../kernel/index.ts";

/**
 * Waits for something of a run. If the task that waits is cancelled, cancels the run as well, because it was invoked for
 * this task.
 */
export async function cancelWithCaller<Value>(
  run: Pick<RunHandle, "cancel">,
  wait: () => Promise<Value>,
): Promise<Value> {
  try {
    return await wait();
  } catch (error) {
    if (error instanceof CancellationError) await run.cancel(error.reason);
    throw error;
  }
}
