import type { TaskId } from "../../kernel/index.ts";
import type { RunState } from "../journal/run-state.ts";
import type { TaskRunner } from "../task/task-runner.ts";
import type { RunHeadcount } from "./run-headcount.ts";

/** The tasks of one run whose code executes in this process, and whether the live tasks of the run only wait. */
export class RunningTasks {
  readonly #state: RunState;
  readonly #seats: RunHeadcount;
  readonly #runners = new Map<TaskId, TaskRunner>();
  /** The runners in no particular order, so that a check can begin at any of them. */
  readonly #ring: TaskRunner[] = [];
  /** Index of each runner in `#ring`. */
  readonly #places = new Map<TaskRunner, number>();
  /** Tasks whose code starts at a later time. Created for the first one, because most runs have none. */
  #delayed: Set<TaskId> | undefined;
  /** Index of the runner that did not rest at the last check. */
  #cursor = 0;

  constructor(state: RunState, seats: RunHeadcount) {
    this.#state = state;
    this.#seats = seats;
  }

  /** Every live task only waits, and the run may be released meanwhile. */
  get isIdle(): boolean {
    return this.#everyLiveTask("isIdle");
  }

  /** Like `isIdle`, but only this process may be able to end a wait, such as that for a cap. */
  get onlyWaits(): boolean {
    return this.#everyLiveTask("onlyWaits");
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
    // The live tasks have seats or wait for one. Ended tasks are not asked.
    const { tasks } = this.#state.headcount;
    for (const id in tasks) {
      const taskId = id as TaskId;
      if (!this.#seats.hasSeat(taskId)) continue;
      const runner = this.#runners.get(taskId);
      if (runner === undefined ? this.#delayed?.has(taskId) !== true : runner.activity.isParked) return false;
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

  /** How long the run stays in memory while it is idle, in milliseconds: as long as the programs of its tasks ask for. */
  get idleMs(): number {
    let most = 0;
    for (const runner of this.#runners.values()) most = Math.max(most, runner.activity.idleMs);
    return most;
  }

  /** The run is about to be released while it only waits, which ends the programs of its tasks. */
  parkPrograms(): void {
    for (const runner of this.#runners.values()) runner.activity.parkPrograms();
  }

  /** Records what each task waits for, if it has not been recorded since the wait began. */
  noteRests(): void {
    for (const runner of this.#runners.values()) runner.activity.noteRest();
  }

  /** The code of a task starts at a later time: the task waits. */
  delay(taskId: TaskId): void {
    (this.#delayed ??= new Set()).add(taskId);
  }

  /** The time of a task has come. If the engine ends the execution, the task starts with the next one, so it no longer waits. */
  endDelay(taskId: TaskId): void {
    this.#delayed?.delete(taskId);
  }

  /** Whether code of the run executes in this process, or waits in its memory. */
  get hasCode(): boolean {
    return this.#runners.size > 0;
  }

  add(runner: TaskRunner): void {
    this.#delayed?.delete(runner.taskId);
    this.#runners.set(runner.taskId, runner);
    this.#places.set(runner, this.#ring.push(runner) - 1);
  }

  drop(runner: TaskRunner): void {
    runner.drop();
    this.#runners.delete(runner.taskId);
    const place = this.#places.get(runner);
    if (place === undefined) return;
    this.#places.delete(runner);
    const last = this.#ring.pop();
    if (last === undefined || last === runner) return;
    this.#ring[place] = last;
    this.#places.set(last, place);
  }

  dropAll(): void {
    for (const runner of this.#runners.values()) this.drop(runner);
  }

  /**
   * A live task without a runner rests. Begins with the runner that did not rest at the last check: while it works, all three
   * checks cost O(1), because it is not off its slot, and n tasks that come to rest one after the other cost O(n) in total. A check
   * that finds every task at rest asks all of them, such as each check of `isOffSlot` while n tasks await delays.
   */
  #everyLiveTask(rest: "isIdle" | "onlyWaits" | "isResting" | "isOffSlot"): boolean {
    const count = this.#ring.length;
    for (let checked = 0; checked < count; checked++) {
      const place = (this.#cursor + checked) % count;
      if (this.#ring[place]?.activity[rest] !== false) continue;
      this.#cursor = place;
      return false;
    }
    return this.#state.liveTasks > 0;
  }
}
