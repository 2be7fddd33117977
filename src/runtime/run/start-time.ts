import { restartDelayMs } from "../process/run-retry.ts";
import type { WorkerContext } from "../process/worker-context.ts";
import type { TaskState } from "../journal/task-state.ts";

/** Time before which the task does not start: its start time (L9), and the delay after a crash of its code. */
export function startTime({ record, crashes, crashedAt }: TaskState, { runRetry }: WorkerContext): number {
  const restartAt = crashes === 0 ? 0 : crashedAt + (restartDelayMs(crashes, runRetry) ?? 0);
  return Math.max(restartAt, record.startAt ?? 0);
}
