import type { CancellationError, CancellationStatus, TaskId } from "../../kernel/index.ts";
import { deadlineOf } from "../journal/task-clock.ts";
import type { WorkerContext } from "../process/worker-context.ts";
import type { TaskState } from "../journal/task-state.ts";
import type { TaskRunner } from "../task/task-runner.ts";
import type { WaitRegistry } from "../task/wait-registry.ts";

/** Cancels and ends tasks. */
interface TaskStopper {
  cancel(taskId: TaskId, reason: string, status: CancellationStatus): void;
  /** Ends a cancelled task whose code has not started. */
  endUnstarted(runner: TaskRunner, stop: CancellationError): void;
}

/** Cancels tasks at their deadlines, and limits the time that a cancelled task has to stop. */
export class StopTimer {
  readonly #worker: WorkerContext;
  readonly #waits: WaitRegistry;
  readonly #stopper: TaskStopper;
  /** Tasks whose deadline is watched. */
  readonly #watched = new Set<TaskId>();

  constructor(worker: WorkerContext, waits: WaitRegistry, stopper: TaskStopper) {
    this.#worker = worker;
    this.#waits = waits;
    this.#stopper = stopper;
  }

  /**
   * B5: cancels the task at its deadline. A running task checks its deadline before each step; for a task that
   * waits or is pending, this timer is needed. Does nothing if the deadline is already watched.
   */
  watchDeadline(task: TaskState): void {
    const { taskId } = task.record;
    if (task.record.budget.deadlineMs === null || this.#watched.has(taskId)) return;
    this.#watched.add(taskId);
    const due = (): number | null => (task.clock.isStopped ? null : (deadlineOf(task) ?? 0) + 1);
    void this.#waits
      .wait(taskId, "deadline", due)
      .came.then(() => this.#stopper.cancel(taskId, "deadline exceeded", "deadline_exceeded"));
  }

  /** Removes the deadline of a task that has ended or starts again, with its other timers. */
  forget(taskId: TaskId): void {
    this.#watched.delete(taskId);
    this.#waits.forgetTask(taskId);
  }

  /**
   * Gives a cancelled task `stopGraceMs` to end. After that, its calls in flight are charged in full and abandoned,
   * the agent's code receives the cancellation error, and gets the same time once more. Code that then has no call
   * in flight is abandoned. The timer is not journaled: after a crash, the next owner gives the full time again.
   */
  giveGrace(runner: TaskRunner): void {
    // C2: the grace starts when the code has ended that no cancel reaches.
    if (runner.isShielded) return;
    const { clock, stopGraceMs } = this.#worker;
    runner.endGrace = this.#waits.at(clock.now() + stopGraceMs, () => this.#endGrace(runner));
  }

  #endGrace(runner: TaskRunner): void {
    const stop = runner.token.error;
    if (runner.isDropped || stop === undefined) return;
    if (runner.activity.abandonCalls(stop)) this.giveGrace(runner);
    else if (!runner.abandon(stop)) this.#stopper.endUnstarted(runner, stop);
  }
}
