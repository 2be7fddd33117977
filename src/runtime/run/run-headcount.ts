import type {
  Headcount,
  HeadcountCommand,
  HeadcountOutcome,
  HeadcountTask,
  Priority,
  SeatStatus,
  TaskId,
} from "../../kernel/index.ts";
import type { RunLog } from "../journal/run-log.ts";
import type { RunState } from "../journal/run-state.ts";
import type { IdleListener, TaskSeats } from "../task/task-host.ts";
import type { AwaitedName } from "../task/wait-registry.ts";

/** Called when the seat of a task changes. */
export interface SeatMoves {
  /** H2: the task must give up its seat when its calls have settled. */
  onYield(taskId: TaskId): void;
  /** The task has lost its seat. */
  onPause(taskId: TaskId): void;
  /**
   * The task holds a seat: a new one, the one that it had before a pause, or the one that it no longer has to give
   * up.
   */
  onSeat(taskId: TaskId): void;
}

const seatEvents = {
  granted: "seat_grant",
  paused: "seat_pause",
  recalled: "seat_recall",
  kept: "seat_keep",
} as const;

/**
 * The seats of one run. Applies commands to the headcount, emits an event for every change, and notifies the tasks
 * of the changes.
 */
export class RunHeadcount implements TaskSeats {
  readonly #log: RunLog;
  readonly #state: RunState;
  readonly #moves: SeatMoves;
  readonly #listener: IdleListener;
  /** Whether the owner is about to release the run, so that no task may start another call. */
  #isDraining = false;

  constructor(log: RunLog, state: RunState, moves: SeatMoves, listener: IdleListener) {
    this.#log = log;
    this.#state = state;
    this.#moves = moves;
    this.#listener = listener;
  }

  status(taskId: TaskId): SeatStatus {
    if (this.#state.paused || this.#isDraining) return "paused";
    return this.#find(taskId)?.status ?? "paused";
  }

  /** Whether the task has a seat, even while the run is being released. */
  hasSeat(taskId: TaskId): boolean {
    return !this.#state.paused && this.#find(taskId)?.status === "seated";
  }

  isHeldSeated(taskId: TaskId): boolean {
    const { status, heldFor } = this.#find(taskId) ?? {};
    return !this.#state.paused && status === "pausing" && heldFor !== undefined;
  }

  priority(taskId: TaskId): Priority {
    return this.#find(taskId)?.priority ?? this.#state.task(taskId).record.supervision.priority;
  }

  /** Requests a seat. The caller must pass the outcome to `carryOut`. */
  acquire(command: Extract<HeadcountCommand, { type: "acquire" }>): HeadcountOutcome {
    return this.#log.applySeat(command);
  }

  apply(command: HeadcountCommand): void {
    this.carryOut(this.#log.applySeat(command));
  }

  settle(taskId: TaskId): void {
    if (this.#find(taskId)?.status === "pausing") this.apply({ type: "settle", taskId });
  }

  /**
   * Records that a task waits. This is stored with its seat, so that a replay that reaches the same wait emits no
   * second event (trap R13).
   */
  suspend(taskId: TaskId, waitsFor: readonly AwaitedName[]): void {
    if (this.#find(taskId)?.idle !== false) return;
    const times = waitsFor.flatMap(({ due }) => due?.() ?? []);
    const data = {
      waitsFor: waitsFor.flatMap(({ name, others = [] }) => [name, ...others]),
      until: times.length === 0 ? null : Math.min(...times),
    };
    this.#log.emit(taskId, { type: "task_suspend", data });
    this.apply({ type: "suspend", taskId });
  }

  wake(taskId: TaskId, by: string): void {
    this.#listener.stayAwake();
    if (this.#find(taskId)?.idle !== true) return;
    this.#log.emit(taskId, { type: "task_wake", data: { by } });
    this.apply({ type: "wake", taskId });
  }

  drain(): void {
    this.#isDraining = true;
  }

  /**
   * Emits an event for every seat change of the outcome, then notifies the tasks. The caller itself reports the
   * seat of `newTask`.
   */
  carryOut(outcome: HeadcountOutcome, newTask?: TaskId): void {
    if (!("changes" in outcome)) return;
    for (const { taskId, change } of outcome.changes) {
      if (change === "granted" && taskId === newTask) continue;
      const yieldsTo = this.#find(taskId)?.yieldsTo ?? taskId;
      if (change === "pausing") this.#log.emit(taskId, { type: "seat_yield", data: { taskId, yieldsTo } });
      else this.#log.emit(taskId, { type: seatEvents[change], data: { taskId } });
    }
    for (const { taskId, change } of outcome.changes) {
      if (change === "pausing") this.#moves.onYield(taskId);
      else if (change === "paused") this.#moves.onPause(taskId);
      else this.#moves.onSeat(taskId);
    }
  }

  #find(taskId: TaskId): HeadcountTask | undefined {
    return this.#state.headcount.tasks[taskId];
  }
}

/** Whether a task must give up its seat and still waits for its open calls (H2). */
export function hasPausing({ tasks }: Headcount): boolean {
  for (const taskId in tasks) if (tasks[taskId as TaskId]?.status === "pausing") return true;
  return false;
}
