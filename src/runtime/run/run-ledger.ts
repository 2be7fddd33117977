import {
  Fault,
  fitsInFull,
  fromNanoUsd,
  type Decision,
  type EventDraft,
  type Ledger,
  type LedgerCommand,
  type LedgerOutcome,
  type Reservation,
  type ReserveCommand,
  type TaskId,
} from "../../kernel/index.ts";
import type { RunLog } from "../journal/run-log.ts";
import type { RunState } from "../journal/run-state.ts";
import type { TaskLedger } from "../task/task-host.ts";

/** The ledger of one run: applies commands, emits an event for every warning and overrun, and resolves reservations that had to wait. */
export class RunLedger implements TaskLedger {
  readonly #log: RunLog;
  readonly #state: RunState;
  /** Reservations without a decision, by id. Created with the first one. */
  #undecided: Map<string, PromiseWithResolvers<Decision>> | undefined;
  /** Resolves with the next command that is applied. Created when a call waits for it. */
  #applied: PromiseWithResolvers<void> | undefined;

  constructor(log: RunLog, state: RunState) {
    this.#log = log;
    this.#state = state;
  }

  fits(command: ReserveCommand): boolean {
    return fitsInFull(this.#state.ledger, command);
  }

  reserve(command: ReserveCommand): Decision | undefined {
    const { id, taskId } = command;
    const outcome = this.#log.applyLedger(command);
    if (!outcome.applied)
      throw new Fault("internal", `task ${taskId} has no open account to reserve ${id} from`);
    const [first] = outcome.decisions;
    const own = first?.id === id ? first : outcome.decisions.find((decision) => decision.id === id);
    if (own === undefined) (this.#undecided ??= new Map()).set(id, Promise.withResolvers());
    this.#report(taskId, outcome);
    return own;
  }

  whenDecided(reservationId: string): Promise<Decision> {
    const undecided = this.#undecided?.get(reservationId);
    if (undecided === undefined)
      throw new Fault("internal", `reservation ${reservationId} does not wait for a decision`);
    return undecided.promise;
  }

  apply(taskId: TaskId, command: LedgerCommand): void {
    this.#report(taskId, this.#log.applyLedger(command));
    this.#applied?.resolve();
    this.#applied = undefined;
  }

  whenFreed(): Promise<void> | undefined {
    if (this.#state.ledger.open.length === 0) return undefined;
    return (this.#applied ??= Promise.withResolvers<void>()).promise;
  }

  lose(taskId: TaskId, reservationId: string, isFailed = false): void {
    const reservation = this.#state.ledger.open.find(({ id }) => id === reservationId);
    if (reservation === undefined) return;
    this.#log.emit(taskId, lostReservationEvent(reservation));
    this.apply(taskId, { type: "lose", id: reservationId, ...(isFailed && { failed: true }) });
  }

  /**
   * B3: withdraws the waiting reservations of a task whose code has stopped, and charges its open reservations in
   * full.
   */
  loseAll(taskId: TaskId): void {
    const { open, waiting } = this.#state.ledger;
    for (const each of waiting)
      if (each.taskId === taskId) this.apply(taskId, { type: "withdraw", id: each.id });
    for (const each of open) if (each.taskId === taskId && each.lasting !== true) this.lose(taskId, each.id);
  }

  #report(taskId: TaskId, { decisions, warnings, overrun }: LedgerOutcome): void {
    if (warnings.length > 0)
      for (const data of warnings) this.#log.emit(taskId, { type: "budget_warning", data });
    if (overrun !== null) this.#log.emit(taskId, { type: "budget_overrun", data: overrun });
    if (this.#undecided === undefined || this.#undecided.size === 0) return;
    for (const decision of decisions) {
      this.#undecided.get(decision.id)?.resolve(decision);
      this.#undecided.delete(decision.id);
    }
  }
}

/** Returns the reservations of calls in flight, without those for other runs. */
export function openCalls({ open }: Ledger): readonly Reservation[] {
  return open.some(({ lasting }) => lasting === true) ? open.filter(({ lasting }) => lasting !== true) : open;
}

/** B3: creates the event for a reservation that is charged without reported usage. */
export function lostReservationEvent({ id, attempt, held, narrowed, priced }: Reservation): EventDraft {
  const { tokens, nanoUsd } = narrowed ?? held;
  const costUsd = priced ? fromNanoUsd(nanoUsd) : null;
  return { type: "budget_lost", data: { reservationId: id, attempt, tokens, costUsd } };
}
