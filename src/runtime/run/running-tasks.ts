import type { TaskId } from "../../kernel/index.ts";
import type { RunState } from "../journal/run-state.ts";
import type { TaskRunner } from "../task/task-runner.ts";
import type { RunHeadcount } from "./run-headcount.ts";

/** The tasks of one run whose code executes in this process. It knows whether the live tasks of the run only wait. */
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
  /** Index of the runner that did not only wait at the last check. */
  #cursor = 0;

  constructor(state: RunState, seats: RunHeadcount) {
    this.#state = state;
    this.#seats = seats;
  }

  /** Whether every live task only waits, and the run may be released in this time. */
  get isIdle(): boolean {
    return this.#everyLiveTask("isIdle");
  }

  /**
   * Whether every live task only waits. Unlike for `isIdle`, some waits may end only in this process, such as the
   * wait for a cap.
   */
  get onlyWaits(): boolean {
    return this.#everyLiveTask("onlyWaits");
  }

  /**
   * Whether every live task only waits. Unlike for `isIdle`, tasks may also wait for other runs, for which this
   * process has to stay.
   */
  get isResting(): boolean {
    return this.#everyLiveTask("isResting");
  }

  /**
   * Whether the run does not count against the concurrency of the worker. Unlike for `isResting`, tasks may also
   * wait for a delay.
   */
  get isOffSlot(): boolean {
    return this.#everyLiveTask("isOffSlot");
  }

  /** Whether every live task only waits, and no task with a seat is prevented from its start or its next call. */
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

  /** How long the run stays in memory while it is idle, in milliseconds, as the programs of its tasks request. */
  get idleMs(): number {
    let most = 0;
    for (const runner of this.#runners.values()) most = Math.max(most, runner.activity.idleMs);
    return most;
  }

  /**
   * Ends the programs of the tasks and keeps their questions open, because the run only waits and is about to be
   * released.
   */
  parkPrograms(): void {
    for (const runner of this.#runners.values()) runner.activity.parkPrograms();
  }

  /** Records for what each task waits, if this was not recorded since the wait began. */
  noteRests(): void {
    for (const runner of this.#runners.values()) runner.activity.noteRest();
  }

  /** Notes that the code of a task starts at a later time, so that the task waits. */
  delay(taskId: TaskId): void {
    (this.#delayed ??= new Set()).add(taskId);
  }

  /**
   * Notes that the start time of a task has come, so that it no longer waits. If the engine ends the execution, the
   * task starts in the next one.
   */
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
   * Checks a condition for every live task. A live task without a runner only waits. The check begins with the
   * runner that did not only wait at the last check. While that runner works, the check costs O(1), and if n tasks
   * come to wait one after the other, all checks together cost O(n). A check that finds every task waiting costs
   * O(n).
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
