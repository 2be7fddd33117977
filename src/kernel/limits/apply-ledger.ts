import { Fault } from "../base/fault.ts";
import type { TaskId } from "../base/identity.ts";
import { requireUsd, toNanoUsd, toNanoUsdBound } from "../base/money.ts";
import { capsOf, newAccount, unitOf } from "./account.ts";
import { executionBudget } from "./execution-budget.ts";
import { LedgerBooking, refused } from "./ledger-booking.ts";
import {
  type Account,
  type Ledger,
  type LedgerCommand,
  type LedgerOutcome,
  type LedgerStep,
  nothing,
  type Reservation,
  type ReserveCommand,
  readTopUp,
} from "./ledger.ts";
import {
  boundOf,
  chainOf,
  decideAlone,
  findUnpriced,
  isBearable,
  joinQueue,
  levelPass,
  settlePasses,
} from "./reservation.ts";

/**
 * Applies one command to a ledger in place. No other code may hold the same object. A command that is refused or
 * throws changes nothing. Costs O(depth of the task), plus O(waiting reservations) per decision while reservations
 * wait.
 */
export function bookLedger(ledger: Ledger, command: LedgerCommand): LedgerOutcome {
  const booking = new LedgerBooking(ledger);
  if (!apply(booking, command)) return refused;
  if (ledger.waiting.length > 0) booking.serve();
  return booking.outcome;
}

/** Copies a ledger, for callers that must not change the original object. */
function copyLedger(ledger: Ledger): Ledger {
  const accounts: Record<TaskId, Account> = {};
  for (const account of Object.values(ledger.accounts)) accounts[account.taskId] = { ...account };
  const { lines, tally, lostCalls } = ledger;
  return { ...ledger, accounts, lines: { ...lines }, tally: { ...tally }, lostCalls: { ...lostCalls } };
}

function apply(booking: LedgerBooking, command: LedgerCommand): boolean {
  switch (command.type) {
    case "open":
      return openAccount(booking, command);
    case "reserve":
      return reserve(booking, command);
    case "settle":
      return settle(booking, command);
    case "lose":
      return lose(booking, booking.find(command.id), command.failed);
    case "refund":
      return refund(booking, booking.find(command.id), command.failed);
    case "narrow":
      return narrow(booking, command);
    case "correct":
      return correct(booking, command);
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
      for (const reservation of booking.ledger.open)
        if (reservation.lasting !== true) lose(booking, reservation);
      booking.ledger.waiting = [];
      booking.ledger.passes = {};
      return true;
  }
}

function openAccount(booking: LedgerBooking, command: Extract<LedgerCommand, { type: "open" }>): boolean {
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

function reserve(booking: LedgerBooking, command: ReserveCommand): boolean {
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

function settle(booking: LedgerBooking, command: Extract<LedgerCommand, { type: "settle" }>): boolean {
  const { id, tokens, costUsd, durationMs, turns } = command;
  requireCount("tokens", tokens);
  if (turns !== undefined) requireCount("turns", turns);
  const nanoUsd = costUsd === null ? null : toNanoUsd(costUsd);
  const reservation = booking.find(id);
  if (reservation === undefined) return false;
  const { held, priced } = reservation;
  const billed = { tokens, nanoUsd: nanoUsd ?? held.nanoUsd, turns: turns ?? held.turns };
  if (reservation.lasting === true) booking.spentElsewhere(billed);
  booking.end(reservation, billed, nothing, !priced && nanoUsd === null, { reported: command, durationMs });
  booking.compare(reservation, billed, nanoUsd);
  return true;
}

function charge(booking: LedgerBooking, command: Extract<LedgerCommand, { type: "charge" }>): boolean {
  const { taskId, tokens, costUsd, turns, elsewhere } = command;
  requireCount("tokens", tokens);
  requireCount("turns", turns);
  const amount = { tokens, nanoUsd: costUsd === null ? 0 : toNanoUsd(costUsd), turns };
  if (booking.ledger.accounts[taskId] === undefined) return false;
  booking.spend(taskId, nothing, amount, nothing, costUsd === null && tokens > 0);
  if (elsewhere === true) booking.spentElsewhere(amount);
  const excess = booking.findPassedCap(taskId);
  if (excess !== undefined) booking.overran({ ...excess, reservationId: null });
  return true;
}

function topUp(booking: LedgerBooking, command: Extract<LedgerCommand, { type: "topUp" }>): boolean {
  const add = readTopUp(command.add);
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

function reprioritize(
  booking: LedgerBooking,
  command: Extract<LedgerCommand, { type: "reprioritize" }>,
): boolean {
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

function closeAccount(booking: LedgerBooking, taskId: TaskId): boolean {
  const { open, waiting } = booking.ledger;
  const account = booking.accounts[taskId];
  const holder = (each: { readonly taskId: TaskId }): boolean => each.taskId === taskId;
  if (account === undefined || open.some(holder) || waiting.some(holder)) return false;
  account.closed = true;
  booking.drop(taskId);
  return true;
}

/**
 * B3: charges all reserved tokens and dollars of a call, because no usage was reported. The reserved turn is not
 * charged.
 */
function lose(booking: LedgerBooking, reservation: Reservation | undefined, failed = false): boolean {
  if (reservation === undefined) return false;
  const { held, narrowed = held, priced } = reservation;
  const charged = narrowed.turns === 0 ? narrowed : { ...narrowed, turns: 0 };
  booking.end(reservation, charged, charged, !priced, { failed });
  return true;
}

/**
 * B3: lowers the amount that an open call is charged if its usage is never reported. The reservation does not
 * change, because it is the upper bound of the bill (B1).
 */
function narrow(booking: LedgerBooking, command: Extract<LedgerCommand, { type: "narrow" }>): boolean {
  const { id, tokens, costUsd } = command;
  requireCount("tokens", tokens);
  if (costUsd !== null) requireUsd(costUsd);
  const reservation = booking.find(id);
  if (reservation === undefined) return false;
  const { held } = reservation;
  const nanoUsd = costUsd === null ? held.nanoUsd : Math.min(held.nanoUsd, toNanoUsdBound(costUsd));
  booking.replace(reservation, {
    ...reservation,
    narrowed: { ...held, tokens: Math.min(held.tokens, tokens), nanoUsd },
  });
  return true;
}

/**
 * B3: replaces the charge of an unreported call by its real cost, for the task, every ancestor, the cost line and
 * the tally.
 */
function correct(booking: LedgerBooking, command: Extract<LedgerCommand, { type: "correct" }>): boolean {
  const { id, tokens, costUsd } = command;
  requireCount("tokens", tokens);
  const nanoUsd = costUsd === null ? null : toNanoUsd(costUsd);
  const call = booking.ledger.lostCalls[id];
  if (call === undefined) return false;
  const billed = { tokens, nanoUsd: nanoUsd ?? call.charged.nanoUsd, turns: 0 };
  booking.correct(id, call, billed, command);
  const { charged, priced, chain } = call;
  const [nearest] = chain;
  if (nearest !== undefined) booking.compare({ id, taskId: nearest, held: charged, priced }, billed, nanoUsd);
  return true;
}

function refund(booking: LedgerBooking, reservation: Reservation | undefined, failed = false): boolean {
  if (reservation === undefined) return false;
  booking.end(reservation, nothing, nothing, false, { failed });
  return true;
}

function requireCount(name: string, count: number): void {
  if (Number.isSafeInteger(count) && count >= 0) return;
  throw new Fault("invalid_argument", `invalid ${name} ${count}: expected an integer from 0`);
}

/** Returns the ledger after one command and does not change the given one. Costs O(open accounts). */
export function stepLedger(state: Ledger, command: LedgerCommand): LedgerStep {
  const next = copyLedger(state);
  const outcome = bookLedger(next, command);
  return { state: outcome.applied ? next : state, outcome };
}

/**
 * Whether an exact count of the input tokens could not change the decision, because the call is granted with its
 * whole output limit or is refused for another reason.
 */
export function fitsInFull(ledger: Ledger, request: ReserveCommand): boolean {
  const chain = chainOf(ledger.accounts, request.taskId);
  if (ledger.overrun !== null || findUnpriced(ledger, chain, request) !== undefined) return true;
  return isBearable(chain, boundOf(request, request.output.maxTokens));
}
