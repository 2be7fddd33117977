import {
  Fault,
  type Decision,
  type LedgerCommand,
  type LedgerOutcome,
  type ReserveCommand,
  type TaskId,
} from "../../kernel/index.ts";
import { lostReservationEvent } from "../journal/lost-calls.ts";
import type { RunLog } from "../journal/run-log.ts";
import type { RunState } from "../journal/run-state.ts";

/** A run's ledger at work: books, tells of what it found, and brings decisions to those who wait for them. */
export class RunLedger {
  readonly #log: RunLog;
  readonly #state: RunState;
  /** Made with the first. */
  #waiting: Map<string, PromiseWithResolvers<Decision>> | undefined;

  constructor(log: RunLog, state: RunState) {
    this.#log = log;
    this.#state = state;
  }

  /** The decision, if there is one at once. */
  reserve(taskId: TaskId, command: ReserveCommand): Decision | undefined {
    const outcome = this.#log.applyLedger(command);
    if (!outcome.applied) throw new Fault("internal", `task ${taskId} has no purse to reserve from`);
    const [first] = outcome.decisions;
    const own = first?.id === command.id ? first : outcome.decisions.find(({ id }) => id === command.id);
    if (own === undefined) (this.#waiting ??= new Map()).set(command.id, Promise.withResolvers());
    this.#tell(taskId, outcome);
    return own;
  }

  decided(reservationId: string): Promise<Decision> {
    const waiting = this.#waiting?.get(reservationId);
    if (waiting === undefined) throw new Fault("internal", `${reservationId} does not wait for a decision`);
    return waiting.promise;
  }

  book(taskId: TaskId, command: LedgerCommand): void {
    this.#tell(taskId, this.#log.applyLedger(command));
  }

  /** B3: it may have cost all that was held, if it is still open. */
  lose(taskId: TaskId, reservationId: string): void {
    const reservation = this.#state.ledger.open.find(({ id }) => id === reservationId);
    if (reservation === undefined) return;
    this.#log.emit(taskId, lostReservationEvent(reservation));
    this.book(taskId, { type: "lose", id: reservationId });
  }

  /** B3: the task's code is gone. */
  loseAll(taskId: TaskId): void {
    const { open, waiting } = this.#state.ledger;
    for (const each of waiting)
      if (each.taskId === taskId) this.book(taskId, { type: "withdraw", id: each.id });
    for (const each of open) if (each.taskId === taskId) this.lose(taskId, each.id);
  }

  #tell(taskId: TaskId, { decisions, warnings, overrun }: LedgerOutcome): void {
    if (warnings.length > 0)
      for (const data of warnings) this.#log.emit(taskId, { type: "budget_warning", data });
    if (overrun !== null) this.#log.emit(taskId, { type: "budget_overrun", data: overrun });
    if (this.#waiting === undefined || this.#waiting.size === 0) return;
    for (const decision of decisions) {
      this.#waiting.get(decision.id)?.resolve(decision);
      this.#waiting.delete(decision.id);
    }
  }
}
