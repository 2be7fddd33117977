import type { TaskId } from "../../kernel/index.ts";
import type { RunState } from "../journal/run-state.ts";
import type { TaskRunner } from "../task/task-runner.ts";
import type { RunHeadcount } from "./run-headcount.ts";

/** The tasks of one run whose code executes in this process, and whether the live tasks of the run only wait. */
export class RunningTasks {
  readonly #state: RunState;
  readonly #seats: RunHeadcount;
  readonly #runners = new Map<TaskId, TaskRunner>();

  constructor(state: RunState, seats: RunHeadcount) {
    this.#state = state;
    this.#seats = seats;
  }

  /** Every live task only waits, and the run may be released meanwhile. */
  get isIdle(): boolean {
    return this.#everyLiveTask("isIdle");
  }

  /** Like `isIdle`, but tasks may also wait for other runs, for which this process has to stay. */
  get isResting(): boolean {
    return this.#everyLiveTask("isResting");
  }

  /** Like `isResting`, but tasks may also await a delay. The run takes no room of the worker. */
  get isOffSlot(): boolean {
    return this.#everyLiveTask("isOffSlot");
  }

  /** Like `isIdle`, and no task that has a seat is kept from its start or its next call. */
  get isWaiting(): boolean {
    if (!this.isIdle) return false;
    for (const { record, outcome } of this.#state.tasks.values()) {
      if (outcome !== null || !this.#seats.hasSeat(record.taskId)) continue;
      if (this.#runners.get(record.taskId)?.activity.isParked !== false) return false;
    }
    return true;
  }

  /** A call of some task is in flight. */
  get hasCalls(): boolean {
    for (const runner of this.#runners.values()) if (runner.activity.isCalling) return true;
    return false;
  }

  get(taskId: TaskId): TaskRunner | undefined {
    return this.#runners.get(taskId);
  }

  all(): Iterable<TaskRunner> {
    return this.#runners.values();
  }

  add(runner: TaskRunner): void {
    this.#runners.set(runner.taskId, runner);
  }

  drop(runner: TaskRunner): void {
    runner.drop();
    this.#runners.delete(runner.taskId);
  }

  dropAll(): void {
    for (const runner of this.#runners.values()) runner.drop();
    this.#runners.clear();
  }

  #everyLiveTask(rest: "isIdle" | "isResting" | "isOffSlot"): boolean {
    let isAnyLive = false;
    for (const { record, outcome } of this.#state.tasks.values()) {
      if (outcome !== null) continue;
      if (this.#runners.get(record.taskId)?.activity[rest] === false) return false;
      isAnyLive = true;
    }
    return isAnyLive;
  }
}
