import { Fault } from "../../kernel/index.ts";
import type { CancellationScope } from "./cancellation-scope.ts";
import type { TaskRunner } from "./task-runner.ts";

/** The code that waits for the seat of its task. */
export interface SeatWaiter {
  readonly runner: TaskRunner;
  readonly cancelScope: CancellationScope;
}

/** H2: resolves when the task has a seat. Throws `seat_lost` if it has no seat after `waitMs`. */
export async function seatWithin({ runner, cancelScope }: SeatWaiter, waitMs: number): Promise<void> {
  const { activity, taskId, worker } = runner;
  if (activity.hasSeat(cancelScope)) return;
  const over = Promise.withResolvers<void>();
  const cancel = worker.clock.schedule(worker.clock.now() + waitMs, over.resolve);
  try {
    await activity.whenRecalled(cancelScope, over.promise);
  } finally {
    cancel();
  }
  if (activity.hasSeat(cancelScope)) return;
  throw new Fault(
    "seat_lost",
    `task ${taskId} has had no seat for ${waitMs} ms, because another task took it or the run is paused; the call is repeated after the recall`,
  );
}
