import type { StepAddress, TaskOutcome, TaskRecord } from "../../kernel/index.ts";
import { asksPerson } from "./wait-names.ts";

/** The clock of a task, which measures the time for its deadline and timeouts. */
export class TaskClock {
  /** Time at which the clock starts: the creation of the task, or its later start (L9). Epoch milliseconds. */
  readonly startedAt: number;
  #stoppedMs = 0;
  #addedMs = 0;
  #stoppedSince: number | null = null;

  constructor(startedAt: number) {
    this.startedAt = startedAt;
  }

  get isStopped(): boolean {
    return this.#stoppedSince !== null;
  }

  /** How long the clock has been stopped, without a stop that has not ended yet. Milliseconds. */
  get stoppedMs(): number {
    return this.#stoppedMs;
  }

  /** B5: returns how much time the task has used until this time. Milliseconds. */
  usedMs(at: number): number {
    const now = this.#stoppedSince ?? at;
    return Math.max(0, now - this.startedAt - this.#stoppedMs);
  }

  /** By how much top-ups have moved the deadline. Milliseconds. */
  get addedMs(): number {
    return this.#addedMs;
  }

  /** B5: moves the deadline. Timeouts do not change. */
  addTime(ms: number): void {
    this.#addedMs += ms;
  }

  /** Stops the clock or starts it again at this time. Does nothing if the clock is already in this state. */
  set(isRunning: boolean, at: number): void {
    const time = Math.max(at, this.startedAt);
    if (!isRunning) {
      this.#stoppedSince ??= time;
    } else if (this.#stoppedSince !== null) {
      this.#stoppedMs += time - this.#stoppedSince;
      this.#stoppedSince = null;
    }
  }
}

/** The facts that decide whether the clock of a task runs. */
interface ClockedTask {
  readonly record: Pick<TaskRecord, "timeoutWhileWaiting">;
  readonly clock: TaskClock;
  readonly outcome: TaskOutcome | null;
  readonly unseated: boolean;
  readonly opened: ReadonlyMap<StepAddress, number>;
}

/**
 * H5, B5: stops or starts the clock of a task. It is stopped while the run or the task is paused, while the task
 * waits for a person (unless `timeoutWhileWaiting` is set), and after the task has ended.
 */
export function updateClock(
  { record, clock, outcome, unseated, opened }: ClockedTask,
  isRunPaused: boolean,
  at: number,
): void {
  const isAsking = record.timeoutWhileWaiting !== true && [...opened.keys()].some(asksPerson);
  clock.set(!isRunPaused && !unseated && outcome === null && !isAsking, at);
}

/**
 * B5: returns the time at which the task passes its deadline if its clock does not stop again, in epoch
 * milliseconds. `null` means no deadline.
 */
export function deadlineOf({
  record,
  clock,
}: {
  readonly record: TaskRecord;
  readonly clock: TaskClock;
}): number | null {
  const { deadlineMs } = record.budget;
  return deadlineMs === null ? null : clock.startedAt + deadlineMs + clock.stoppedMs + clock.addedMs;
}
