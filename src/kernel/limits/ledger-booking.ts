import { addSpend, findExcess, findOverbilling, findWarnings, subtractSpend } from "./account.ts";
import type { TaskId } from "../base/identity.ts";
import {
  type Account,
  type CostLabel,
  type CostLine,
  type Decision,
  type Exhaustion,
  type Ledger,
  type LedgerOutcome,
  type LostCharge,
  nothing,
  type Overrun,
  type ReportedSpend,
  type Reservation,
  type ReserveCommand,
  type Spend,
  tallyCall,
  type TalliedCall,
} from "./ledger.ts";
import { boundOf, chainOf, isPriced, leaveQueue, nextDecision } from "./reservation.ts";

const none: readonly never[] = Object.freeze([]);
/** The outcome of a command that was not applied. */
export const refused: LedgerOutcome = Object.freeze({
  applied: false,
  decisions: none,
  warnings: none,
  overrun: null,
});
/** The outcome of a command that was applied and has nothing to report. */
const quiet: LedgerOutcome = Object.freeze({ ...refused, applied: true });

/** A value that may be changed in place. */
type Changing<Value> = { -readonly [Key in keyof Value]: Value[Key] };

const noReservations: readonly Reservation[] = [];

/** How a call ended. */
interface CallEnd extends Pick<TalliedCall, "reported" | "durationMs" | "failed"> {}

/** How a call ends that was interrupted: without a reply, and not as a failure of the model. */
const cut: CallEnd = Object.freeze({});

let lastLabel: CostLabel | undefined;
let lastKey = "";

/**
 * Returns the key of a cost line. The key of the last label is cached. It contains the length of the provider's
 * name, because both names may contain spaces.
 */
function lineKey(label: CostLabel): string {
  if (label !== lastLabel) {
    lastKey = `${label.agentId} ${label.provider.length} ${label.provider} ${label.modelId}`;
    lastLabel = label;
  }
  return lastKey;
}

/**
 * A ledger while a command is applied to it, with the results so far. Lists and amounts in it are replaced, never
 * changed.
 */
export class LedgerBooking {
  readonly ledger: Changing<Ledger>;
  #decisions: Decision[] | undefined;
  #warnings: Exhaustion[] | undefined;
  #overrun: Overrun | null = null;

  constructor(ledger: Ledger) {
    this.ledger = ledger;
  }

  get accounts(): Record<TaskId, Changing<Account>> {
    return this.ledger.accounts;
  }

  get outcome(): LedgerOutcome {
    if (this.#decisions === undefined && this.#warnings === undefined && this.#overrun === null) return quiet;
    return {
      applied: true,
      decisions: this.#decisions ?? none,
      warnings: this.#warnings ?? none,
      overrun: this.#overrun,
    };
  }

  /** B6: charges the task and every ancestor. */
  spend(taskId: TaskId, released: Spend, spent: Spend, lost: Spend, unpriced: boolean): void {
    const { accounts } = this;
    for (let at: TaskId | null = taskId; at !== null;) {
      const account: Changing<Account> | undefined = accounts[at];
      if (account === undefined) return;
      if (spent !== nothing) account.spent = addSpend(account.spent, spent);
      if (released !== nothing) account.reserved = subtractSpend(account.reserved, released);
      if (lost !== nothing) account.lost = addSpend(account.lost, lost);
      if (unpriced) account.unpriced++;
      this.#warn(account);
      at = account.parentId;
    }
  }

  /** B6: counts an amount that another run, started by this one, has spent. That run itself reports it. */
  spentElsewhere(spent: Spend): void {
    this.ledger.elsewhere = addSpend(this.ledger.elsewhere, spent);
  }

  #warn(account: Changing<Account>): void {
    const warnings = findWarnings(account);
    if (warnings.length === 0) return;
    (this.#warnings ??= []).push(...warnings);
    account.warned = [...account.warned, ...warnings.map(({ dimension }) => dimension)];
  }

  find(id: string): Reservation | undefined {
    for (const each of this.ledger.open) if (each.id === id) return each;
    return undefined;
  }

  replace(reservation: Reservation, next: Reservation): void {
    this.ledger.open = this.ledger.open.map((each) => (each === reservation ? next : each));
  }

  /** Replaces the charge of an unreported call. */
  correct(id: string, call: LostCharge, billed: Spend, reported: ReportedSpend): void {
    const lostCalls = this.ledger.lostCalls as Record<string, LostCharge>;
    delete lostCalls[id];
    const { chain, charged, priced, label, day, hour } = call;
    const spent = subtractSpend(billed, charged);
    const lost = subtractSpend(nothing, charged);
    // A call without a price is counted as unpriced until a cost is known.
    const unpriced = !priced && reported.costUsd !== null ? -1 : 0;
    for (const taskId of chain) {
      const account = this.accounts[taskId];
      if (account === undefined) continue;
      account.spent = addSpend(account.spent, spent);
      account.lost = addSpend(account.lost, lost);
      account.unpriced += unpriced;
      this.#warn(account);
    }
    if (label === undefined) return;
    const lines = this.ledger.lines as Record<string, CostLine>;
    const key = lineKey(label);
    const line = lines[key];
    if (line !== undefined)
      lines[key] = {
        ...line,
        lostCalls: line.lostCalls - 1,
        spent: addSpend(line.spent, spent),
        lost: addSpend(line.lost, lost),
        unpriced: line.unpriced + unpriced,
      };
    if (day !== undefined)
      tallyCall(this.ledger, { label, day, hour, spent, lost, unpriced, lostCalls: -1, reported });
  }

  /** Ends an open reservation and charges what was spent. */
  end(reservation: Reservation, spent: Spend, lost: Spend, unpriced: boolean, how: CallEnd = cut): void {
    const { open } = this.ledger;
    this.ledger.open = open.length === 1 ? noReservations : open.filter((each) => each !== reservation);
    const { taskId, held, label, day, hour } = reservation;
    this.spend(taskId, held, spent, lost, unpriced);
    const isLost = lost !== nothing;
    if (isLost) this.#keepLost(reservation, lost);
    if (label === undefined) return;
    if (spent !== nothing) this.#addLine(label, spent, lost, unpriced);
    const { reported, durationMs, failed = false } = how;
    if (day === undefined || (spent === nothing && !failed)) return;
    const counts = { unpriced: unpriced ? 1 : 0, lostCalls: isLost ? 1 : 0, failed };
    tallyCall(this.ledger, { label, day, hour, spent, lost, ...counts, reported, durationMs });
  }

  #keepLost({ id, taskId, priced, label, day, hour }: Reservation, charged: Spend): void {
    const chain = chainOf(this.ledger.accounts, taskId).map((account) => account.taskId);
    const lostCalls = this.ledger.lostCalls as Record<string, LostCharge>;
    lostCalls[id] = {
      taskId,
      chain,
      charged,
      priced,
      ...(label !== undefined && { label }),
      ...(day !== undefined && { day }),
      ...(hour !== undefined && { hour }),
    };
  }

  #addLine(label: CostLabel, spent: Spend, lost: Spend, unpriced: boolean): void {
    const lines = this.ledger.lines as Record<string, CostLine>;
    const key = lineKey(label);
    const line = lines[key];
    lines[key] = {
      label,
      calls: (line?.calls ?? 0) + 1,
      lostCalls: (line?.lostCalls ?? 0) + (lost === nothing ? 0 : 1),
      spent: line === undefined ? spent : addSpend(line.spent, spent),
      lost: line === undefined ? lost : lost === nothing ? line.lost : addSpend(line.lost, lost),
      unpriced: (line?.unpriced ?? 0) + (unpriced ? 1 : 0),
    };
  }

  /**
   * B1: records an overrun if the bill of a call exceeds its reserved bound. `nanoUsd` is the reported cost, if
   * there is one.
   */
  compare(
    { id, taskId, held, priced }: Pick<Reservation, "id" | "taskId" | "held" | "priced">,
    billed: Spend,
    nanoUsd: number | null,
  ): void {
    // Without a known price there is no bound that the bill could exceed; compare with the caps instead.
    const found = priced || nanoUsd === null ? undefined : this.findPassedCap(taskId);
    const bound = priced || billed.nanoUsd === held.nanoUsd ? held : { ...held, nanoUsd: billed.nanoUsd };
    const excess = findOverbilling(this.ledger.accounts, taskId, bound, billed) ?? found;
    if (excess !== undefined) this.overran({ ...excess, reservationId: id });
  }

  /** The nearest cap of the task or an ancestor that is now exceeded. */
  findPassedCap(taskId: TaskId): Exhaustion | undefined {
    return chainOf(this.ledger.accounts, taskId)
      .map((account) => findExcess(account, addSpend(account.spent, account.reserved)))
      .find((each) => each !== undefined);
  }

  leave(id: string): boolean {
    const { waiting } = this.ledger;
    Object.assign(this.ledger, leaveQueue(this.ledger, id, false));
    return this.ledger.waiting !== waiting;
  }

  overran(overrun: Overrun): void {
    this.#overrun = overrun;
    this.ledger.overrun = overrun;
  }

  /** Removes closed accounts without children, from the task upwards. */
  drop(taskId: TaskId): void {
    const { accounts } = this;
    for (let at: TaskId | null = taskId; at !== null;) {
      const account: Account | undefined = accounts[at];
      if (account === undefined || !account.closed || account.children > 0 || account.parentId === null)
        return;
      delete accounts[at];
      this.#forgetAccount(at);
      const parent = accounts[account.parentId];
      if (parent !== undefined) parent.children--;
      at = account.parentId;
    }
  }

  /**
   * Forgets the account of a task whose calls were lost, because a later account of the same task was not charged
   * for them.
   */
  #forgetAccount(taskId: TaskId): void {
    const lostCalls = this.ledger.lostCalls as Record<string, LostCharge>;
    for (const id in lostCalls) {
      const call = lostCalls[id] as LostCharge;
      if (call.chain.includes(taskId))
        lostCalls[id] = { ...call, chain: call.chain.filter((each) => each !== taskId) };
    }
  }

  serve(): void {
    for (
      let decision = nextDecision(this.ledger);
      decision !== undefined;
      decision = nextDecision(this.ledger)
    ) {
      const { id } = decision;
      const request = this.ledger.waiting.find((each) => each.id === id);
      if (request === undefined) return;
      Object.assign(this.ledger, leaveQueue(this.ledger, id, decision.kind === "granted"));
      this.decide(request, decision);
    }
  }

  decide(request: ReserveCommand, decision: Decision): void {
    if (this.#decisions === undefined) this.#decisions = [decision];
    else this.#decisions.push(decision);
    if (decision.kind === "granted") this.#grant(request, decision.outputTokens);
  }

  #grant(request: ReserveCommand, outputTokens: number): void {
    const { id, taskId, attempt, label, day, hour, lasting } = request;
    const held = boundOf(request, outputTokens);
    const priced = isPriced(request);
    const reservation: Reservation = {
      id,
      taskId,
      attempt,
      held,
      priced,
      ...(lasting === true && { lasting }),
      ...(label !== undefined && { label }),
      ...(day !== undefined && (hour === undefined ? { day } : { day, hour })),
    };
    const { accounts } = this;
    for (let at: TaskId | null = taskId; at !== null;) {
      const account: Changing<Account> | undefined = accounts[at];
      if (account === undefined) break;
      account.reserved = addSpend(account.reserved, held);
      at = account.parentId;
    }
    const { open } = this.ledger;
    this.ledger.open = open.length === 0 ? [reservation] : [...open, reservation];
  }
}
