import {
  addSpend,
  capsOf,
  findExcess,
  findOverbilling,
  findWarnings,
  newAccount,
  subtractSpend,
  unitOf,
} from "./account.ts";
import { executionBudget } from "./execution-budget.ts";
import { Fault } from "../base/fault.ts";
import type { TaskId } from "../base/identity.ts";
import {
  nothing,
  type Account,
  type CostLabel,
  type CostLine,
  type Decision,
  type Exhaustion,
  type Ledger,
  type LedgerCommand,
  type LedgerOutcome,
  type Overrun,
  type ReportedSpend,
  type Reservation,
  type ReserveCommand,
  type Spend,
} from "./ledger.ts";
import { requireUsd, toNanoUsd } from "../base/money.ts";
import { boundOf, isPriced } from "./reservation-bound.ts";
import {
  chainOf,
  decideAlone,
  joinQueue,
  leaveQueue,
  levelPass,
  nextDecision,
  settlePasses,
} from "./reservation-decision.ts";
import { spendOfTopUp } from "./top-up.ts";
import { tallyCall } from "./usage-tally.ts";

/**
 * Applies one command to a ledger in place. The caller must be its only holder. A command that is refused or throws
 * changes nothing. Costs O(depth of the task), plus O(waiting reservations) per decision while reservations wait.
 */
export function bookLedger(ledger: Ledger, command: LedgerCommand): LedgerOutcome {
  const booking = new Booking(ledger);
  if (!apply(booking, command)) return refused;
  if (ledger.waiting.length > 0) booking.serve();
  return booking.outcome;
}

/** Copies a ledger, for callers that must not change the original. */
export function copyLedger(ledger: Ledger): Ledger {
  const accounts: Record<TaskId, Account> = {};
  for (const account of Object.values(ledger.accounts)) accounts[account.taskId] = { ...account };
  return { ...ledger, accounts, lines: { ...ledger.lines }, tally: { ...ledger.tally } };
}

const none: readonly never[] = Object.freeze([]);
const refused: LedgerOutcome = Object.freeze({
  applied: false,
  decisions: none,
  warnings: none,
  overrun: null,
});
/** The outcome of a command that was applied and has nothing to report. */
const quiet: LedgerOutcome = Object.freeze({ ...refused, applied: true });

type Changing<Value> = { -readonly [Key in keyof Value]: Value[Key] };

function apply(booking: Booking, command: LedgerCommand): boolean {
  switch (command.type) {
    case "open":
      return openAccount(booking, command);
    case "reserve":
      return reserve(booking, command);
    case "settle":
      return settle(booking, command);
    case "lose":
      return lose(booking, booking.find(command.id));
    case "refund":
      return refund(booking, booking.find(command.id));
    case "withdraw":
      return booking.leave(command.id);
    case "charge":
      return charge(booking, command);
    case "topUp":
      return topUp(booking, command);
    case "reprioritize":
      return reprioritize(booking, command);
    case "close":
      return closeAccount(booking, command.taskId);
    case "crash":
      for (const reservation of booking.ledger.open) lose(booking, reservation);
      booking.ledger.waiting = [];
      booking.ledger.passes = {};
      return true;
  }
}

function openAccount(booking: Booking, command: Extract<LedgerCommand, { type: "open" }>): boolean {
  const { taskId, parentId, budget, priority, warnAt = 0.8 } = command;
  const { accounts } = booking;
  const caps = capsOf(executionBudget(budget));
  if (accounts[taskId] !== undefined) return false;
  if (parentId !== null) {
    const parent = accounts[parentId];
    if (parent === undefined) return false;
    parent.children++;
  }
  accounts[taskId] = newAccount({ taskId, parentId, priority, caps, warnAt });
  return true;
}

function reserve(booking: Booking, command: ReserveCommand): boolean {
  const { id, taskId, input, output, turns = 1 } = command;
  const { maxTokens, minTokens = 1 } = output;
  requireCount("input.tokens", input.tokens);
  requireCount("output.maxTokens", maxTokens);
  requireCount("output.minTokens", minTokens);
  requireCount("turns", turns);
  if (input.costUsd !== null) requireUsd(input.costUsd);
  if (output.usdPerToken !== null) requireUsd(output.usdPerToken);
  const { ledger } = booking;
  const account = ledger.accounts[taskId];
  if (account === undefined || account.closed) return false;
  if (booking.find(id) !== undefined) return false;
  const { waiting } = ledger;
  if (waiting.some((each) => each.id === id)) return false;
  const decision = waiting.length === 0 ? decideAlone(ledger, command) : undefined;
  if (decision === undefined) Object.assign(ledger, joinQueue(ledger, command));
  else booking.decide(command, decision);
  return true;
}

function settle(booking: Booking, command: Extract<LedgerCommand, { type: "settle" }>): boolean {
  const { id, tokens, costUsd } = command;
  requireCount("tokens", tokens);
  const nanoUsd = costUsd === null ? null : toNanoUsd(costUsd);
  const reservation = booking.find(id);
  if (reservation === undefined) return false;
  const { held, taskId, priced } = reservation;
  const billed = { tokens, nanoUsd: nanoUsd ?? held.nanoUsd, turns: held.turns };
  booking.end(reservation, billed, nothing, !priced && nanoUsd === null, command);
  // Without a known price there is no bound that the bill could exceed; compare with the caps instead.
  const found = priced || nanoUsd === null ? undefined : booking.findPassedCap(taskId);
  const bound = priced || billed.nanoUsd === held.nanoUsd ? held : { ...held, nanoUsd: billed.nanoUsd };
  const excess = findOverbilling(booking.ledger.accounts, taskId, bound, billed) ?? found;
  if (excess !== undefined) booking.overran({ ...excess, reservationId: id });
  return true;
}

function charge(booking: Booking, command: Extract<LedgerCommand, { type: "charge" }>): boolean {
  const { taskId, tokens, costUsd, turns } = command;
  requireCount("tokens", tokens);
  requireCount("turns", turns);
  const amount = { tokens, nanoUsd: costUsd === null ? 0 : toNanoUsd(costUsd), turns };
  if (booking.ledger.accounts[taskId] === undefined) return false;
  booking.spend(taskId, nothing, amount, nothing, costUsd === null && tokens > 0);
  const excess = booking.findPassedCap(taskId);
  if (excess !== undefined) booking.overran({ ...excess, reservationId: null });
  return true;
}

function topUp(booking: Booking, command: Extract<LedgerCommand, { type: "topUp" }>): boolean {
  const add = spendOfTopUp(command.add);
  const account = booking.accounts[command.taskId];
  if (account === undefined) return false;
  const { caps, warned } = account;
  account.caps = {
    tokens: caps.tokens === null ? null : caps.tokens + add.tokens,
    nanoUsd: caps.nanoUsd === null ? null : caps.nanoUsd + add.nanoUsd,
    turns: caps.turns === null ? null : caps.turns + add.turns,
  };
  // B5: a raised cap may cause a new warning.
  account.warned = warned.filter((dimension) => add[unitOf(dimension)] === 0);
  booking.ledger.overrun = null;
  return true;
}

function reprioritize(booking: Booking, command: Extract<LedgerCommand, { type: "reprioritize" }>): boolean {
  const { taskId, priority } = command;
  const { ledger } = booking;
  const account = booking.accounts[taskId];
  if (account === undefined) return false;
  if (ledger.waiting.some((each) => each.taskId === taskId))
    Object.assign(ledger, levelPass(ledger, priority));
  account.priority = priority;
  Object.assign(ledger, settlePasses(ledger));
  return true;
}

function closeAccount(booking: Booking, taskId: TaskId): boolean {
  const { open, waiting } = booking.ledger;
  const account = booking.accounts[taskId];
  const holder = (each: { readonly taskId: TaskId }): boolean => each.taskId === taskId;
  if (account === undefined || open.some(holder) || waiting.some(holder)) return false;
  account.closed = true;
  booking.drop(taskId);
  return true;
}

/** B3: charges the full tokens and dollars, because no usage was reported. The turn is returned. */
function lose(booking: Booking, reservation: Reservation | undefined): boolean {
  if (reservation === undefined) return false;
  const { held, priced } = reservation;
  const charged = held.turns === 0 ? held : { ...held, turns: 0 };
  booking.end(reservation, charged, charged, !priced);
  return true;
}

function refund(booking: Booking, reservation: Reservation | undefined): boolean {
  if (reservation === undefined) return false;
  booking.end(reservation, nothing, nothing, false);
  return true;
}

function requireCount(name: string, count: number): void {
  if (Number.isSafeInteger(count) && count >= 0) return;
  throw new Fault("invalid_argument", `invalid ${name} ${count}: expected an integer from 0`);
}

const noReservations: readonly Reservation[] = [];

let lastLabel: CostLabel | undefined;
let lastKey = "";

/**
 * The key of a cost line, cached for the last label. It contains the length of the provider's name, because both names
 * may contain spaces.
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
class Booking {
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

  /** Ends an open reservation and charges what was spent. */
  end(
    reservation: Reservation,
    spent: Spend,
    lost: Spend,
    unpriced: boolean,
    reported?: ReportedSpend,
  ): void {
    const { open } = this.ledger;
    this.ledger.open = open.length === 1 ? noReservations : open.filter((each) => each !== reservation);
    const { taskId, held, label, day } = reservation;
    this.spend(taskId, held, spent, lost, unpriced);
    if (label === undefined || spent === nothing) return;
    this.#addLine(label, spent, lost, unpriced);
    if (day !== undefined) tallyCall(this.ledger, { label, day, spent, lost, unpriced, reported });
  }

  #addLine(label: CostLabel, spent: Spend, lost: Spend, unpriced: boolean): void {
    const lines = this.ledger.lines as Record<string, CostLine>;
    const key = lineKey(label);
    const line = lines[key];
    lines[key] = {
      label,
      calls: (line?.calls ?? 0) + 1,
      spent: line === undefined ? spent : addSpend(line.spent, spent),
      lost: line === undefined ? lost : lost === nothing ? line.lost : addSpend(line.lost, lost),
      unpriced: (line?.unpriced ?? 0) + (unpriced ? 1 : 0),
    };
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
      const parent = accounts[account.parentId];
      if (parent !== undefined) parent.children--;
      at = account.parentId;
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
    const { id, taskId, attempt, label, day } = request;
    const held = boundOf(request, outputTokens);
    const priced = isPriced(request);
    const reservation: Reservation = {
      id,
      taskId,
      attempt,
      held,
      priced,
      ...(label !== undefined && { label }),
      ...(day !== undefined && { day }),
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
