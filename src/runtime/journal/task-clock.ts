import type { StepAddress, TaskOutcome, TaskRecord } from "../../kernel/index.ts";
import { asksPerson } from "./wait-names.ts";

/** The clock by which the deadline and the timeouts of a task run. */
export class TaskClock {
  /** When the clock begins to run: the creation of the task, or its later start (L9). Epoch milliseconds. */
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

  /** How long the clock has stood still, without a stop that has not ended yet. Milliseconds. */
  get stoppedMs(): number {
    return this.#stoppedMs;
  }

  /** B5: how much time the task has used until then. Milliseconds. */
  usedMs(at: number): number {
    const now = this.#stoppedSince ?? at;
    return Math.max(0, now - this.startedAt - this.#stoppedMs);
  }

  /** By how much top-ups have moved the deadline. Milliseconds. */
  get addedMs(): number {
    return this.#addedMs;
  }

  /** B5: moves the deadline. Timeouts stay as they are. */
  addTime(ms: number): void {
    this.#addedMs += ms;
  }

  /** Stops the clock or lets it run again at this time. Does nothing if the clock is in that state already. */
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

/** What decides whether the clock of a task runs. */
interface ClockedTask {
  readonly record: Pick<TaskRecord, "timeoutWhileWaiting">;
  readonly clock: TaskClock;
  readonly outcome: TaskOutcome | null;
  readonly unseated: boolean;
  readonly opened: ReadonlyMap<StepAddress, number>;
}

/**
 * H5, B5: the clock of a task stops while the run or the task is paused, while the task waits for a person (unless
 * `timeoutWhileWaiting` is set), and once it has ended.
 */
export function updateClock(
  { record, clock, outcome, unseated, opened }: ClockedTask,
  isRunPaused: boolean,
  at: number,
): void {
  const isAsking = record.timeoutWhileWaiting !== true && [...opened.keys()].some(asksPerson);
  clock.set(!isRunPaused && !unseated && outcome === null && !isAsking, at);
}

/** B5: when the task passes its deadline, in epoch milliseconds, if its clock does not stop again. `null` means no deadline. */
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
