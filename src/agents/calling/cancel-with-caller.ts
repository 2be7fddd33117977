import { CancellationError, type RunHandle } from "../../kernel/index.ts";

/**
 * Waits for a result of a run. If the waiting task is cancelled, it also cancels the run, because the run was
 * started for this task.
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
