import type { CancellationError, CancellationStatus, TaskId } from "../../kernel/index.ts";
import { deadlineOf } from "../journal/task-clock.ts";
import type { WorkerContext } from "../process/worker-context.ts";
import type { TaskState } from "../journal/run-state.ts";
import type { TaskRunner } from "../task/task-runner.ts";
import type { WaitRegistry } from "../task/wait-registry.ts";

/** Who ends tasks. */
interface Stops {
  cancel(taskId: TaskId, reason: string, status: CancellationStatus): void;
  /** Its code has not begun, and is not to. */
  endUnstarted(runner: TaskRunner, stop: CancellationError): void;
}

/** When the tasks of a run are told to stop, and how long they have then. */
export class StopTimer {
  readonly #worker: WorkerContext;
  readonly #waits: WaitRegistry;
  readonly #stops: Stops;

  constructor(worker: WorkerContext, waits: WaitRegistry, stops: Stops) {
    this.#worker = worker;
    this.#waits = waits;
    this.#stops = stops;
  }

  /** B5: a task that only waits does not look at the clock by itself. */
  watchDeadline(task: TaskState): void {
    if (task.record.budget.deadlineMs === null) return;
    const { taskId } = task.record;
    const due = (): number | null => (task.clock.isStopped ? null : (deadlineOf(task) ?? 0) + 1);
    void this.#waits
      .wait(taskId, "deadline", due)
      .came.then(() => this.#stops.cancel(taskId, "deadline exceeded", "deadline_exceeded"));
  }

  /**
   * For a task that is told to stop. Calls that have not settled by then are charged as lost and left, and its code is given the stop; code
   * that has no call open, or does not come to its end within the same time again, is left where it stands. Not journaled: a stop is a fact
   * about the task, so whoever replays it is stopped where it stood, and gives this time anew.
   */
  giveGrace(runner: TaskRunner): void {
    const { clock, stopGraceMs } = this.#worker;
    runner.endGrace = this.#waits.at(clock.now() + stopGraceMs, () => this.#endGrace(runner));
  }

  #endGrace(runner: TaskRunner): void {
    const stop = runner.token.error;
    if (runner.isDropped || stop === undefined) return;
    if (runner.abandonCalls(stop)) this.giveGrace(runner);
    else if (!runner.abandon(stop)) this.#stops.endUnstarted(runner, stop);
  }
}
