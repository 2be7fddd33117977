import type { HeadcountCommand, HeadcountOutcome, HeadcountTask, TaskId } from "../../kernel/index.ts";
import type { RunLog } from "../journal/run-log.ts";
import type { RunState } from "../journal/run-state.ts";
import type { AwaitedName } from "../task/wait-registry.ts";

/** What a move of seats means for the tasks in it. */
export interface SeatMoves {
  /** H2: it is to yield once its calls settle. */
  onYield(taskId: TaskId): void;
  /** It has no seat any more. */
  onPause(taskId: TaskId): void;
  /** It has a seat: a new one, its own again, or the one it need not yield. */
  onSeat(taskId: TaskId): void;
}

const seatEvents = {
  granted: "seat_grant",
  paused: "seat_pause",
  recalled: "seat_recall",
  kept: "seat_keep",
} as const;

/** A run's headcount at work: steps it, tells of every move, and has it carried out. */
export class Seats {
  readonly #log: RunLog;
  readonly #state: RunState;
  readonly #moves: SeatMoves;

  constructor(log: RunLog, state: RunState, moves: SeatMoves) {
    this.#log = log;
    this.#state = state;
    this.#moves = moves;
  }

  find(taskId: TaskId): HeadcountTask | undefined {
    return this.#state.headcount.tasks[taskId];
  }

  /** Asks for a seat; `follow` carries out what comes of it. */
  acquire(command: Extract<HeadcountCommand, { type: "acquire" }>): HeadcountOutcome {
    return this.#log.applySeat(command);
  }

  step(command: HeadcountCommand): void {
    this.follow(this.#log.applySeat(command));
  }

  settle(taskId: TaskId): void {
    if (this.find(taskId)?.status === "pausing") this.step({ type: "settle", taskId });
  }

  /** Whether a task waits is kept with its seat, so it is told once, however often its code comes by on replay (trap R13). */
  suspend(taskId: TaskId, waits: readonly AwaitedName[]): void {
    if (this.find(taskId)?.idle !== false) return;
    const times = waits.flatMap(({ due }) => due?.() ?? []);
    const data = {
      waitsFor: waits.map(({ name }) => name),
      until: times.length === 0 ? null : Math.min(...times),
    };
    this.#log.emit(taskId, { type: "task_suspend", data });
    this.step({ type: "suspend", taskId });
  }

  wake(taskId: TaskId, by: string): void {
    if (this.find(taskId)?.idle !== true) return;
    this.#log.emit(taskId, { type: "task_wake", data: { by } });
    this.step({ type: "wake", taskId });
  }

  /** A newcomer's own seat is told of by whoever hires it. */
  follow(outcome: HeadcountOutcome, newcomer?: TaskId): void {
    if (!("changes" in outcome)) return;
    for (const { taskId, change } of outcome.changes) {
      if (change === "granted" && taskId === newcomer) continue;
      const yieldsTo = this.find(taskId)?.yieldsTo ?? taskId;
      if (change === "pausing") this.#log.emit(taskId, { type: "seat_yield", data: { taskId, yieldsTo } });
      else this.#log.emit(taskId, { type: seatEvents[change], data: { taskId } });
    }
    for (const { taskId, change } of outcome.changes) {
      if (change === "pausing") this.#moves.onYield(taskId);
      else if (change === "paused") this.#moves.onPause(taskId);
      else this.#moves.onSeat(taskId);
    }
  }
}
