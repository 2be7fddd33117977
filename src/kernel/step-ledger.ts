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
import { Fault } from "./fault.ts";
import type { TaskId } from "./identity.ts";
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
  type LedgerStep,
  type Overrun,
  type Reservation,
  type ReserveCommand,
  type Spend,
} from "./ledger.ts";
import { requireUsd, toNanoUsd } from "./money.ts";
import { boundOf, isPriced } from "./reservation-bound.ts";
import {
  chainOf,
  decideAlone,
  joinQueue,
  leaveQueue,
  levelPass,
  nextDecision,
  settlePasses,
} from "./reservation-queue.ts";
import { spendOfTopUp } from "./top-up.ts";

/**
 * Applies one command; the state handed in is not changed. Costs O(depth of the task + accounts that are open), and
 * O(waiting) per decision while reservations wait.
 */
export function stepLedger(state: Ledger, command: LedgerCommand): LedgerStep {
  const draft = new Draft(state);
  const applied = apply(draft, command);
  if (!applied) return { state, outcome: refused };
  draft.serve();
  return draft.finish();
}

const refused: LedgerOutcome = Object.freeze({ applied: false, decisions: [], warnings: [], overrun: null });

function apply(draft: Draft, command: LedgerCommand): boolean {
  switch (command.type) {
    case "open":
      return openAccount(draft, command);
    case "reserve":
      return reserve(draft, command);
    case "settle":
      return settle(draft, command);
    case "lose":
      return draft.end(command.id, chargedInFull);
    case "refund":
      return draft.end(command.id, () => ({ spent: nothing, lost: nothing, unpriced: false }));
    case "withdraw":
      return draft.leave(command.id);
    case "charge":
      return charge(draft, command);
    case "topUp":
      return topUp(draft, command);
    case "reprioritize":
      return reprioritize(draft, command);
    case "close":
      return closeAccount(draft, command.taskId);
    case "crash":
      for (const { id } of draft.ledger.open) draft.end(id, chargedInFull);
      draft.ledger.waiting = [];
      draft.ledger.passes = {};
      return true;
  }
}

function openAccount(draft: Draft, command: Extract<LedgerCommand, { type: "open" }>): boolean {
  const { taskId, parentId, budget, priority, warnAt = 0.8 } = command;
  const caps = capsOf(executionBudget(budget));
  if (draft.ledger.accounts[taskId] !== undefined) return false;
  if (parentId !== null && !draft.change(parentId, ({ children }) => ({ children: children + 1 })))
    return false;
  draft.put(newAccount({ taskId, parentId, priority, caps, warnAt }));
  return true;
}

function reserve(draft: Draft, command: ReserveCommand): boolean {
  const { id, taskId, input, output, turns = 1 } = command;
  const { maxTokens, minTokens = 1 } = output;
  requireCount("input.tokens", input.tokens);
  requireCount("output.maxTokens", maxTokens);
  requireCount("output.minTokens", minTokens);
  requireCount("turns", turns);
  if (input.costUsd !== null) requireUsd(input.costUsd);
  if (output.usdPerToken !== null) requireUsd(output.usdPerToken);
  const { accounts, waiting } = draft.ledger;
  const account = accounts[taskId];
  if (account === undefined || account.closed) return false;
  if (draft.find(id) !== undefined) return false;
  if (waiting.some((each) => each.id === id)) return false;
  const decision = waiting.length === 0 ? decideAlone(draft.ledger, command) : undefined;
  if (decision === undefined) draft.ledger = joinQueue(draft.ledger, command);
  else draft.decide(command, decision);
  return true;
}

function settle(draft: Draft, command: Extract<LedgerCommand, { type: "settle" }>): boolean {
  const { id, tokens, costUsd } = command;
  requireCount("tokens", tokens);
  const nanoUsd = costUsd === null ? null : toNanoUsd(costUsd);
  const reservation = draft.find(id);
  if (reservation === undefined) return false;
  const { held, taskId, priced } = reservation;
  const billed = { tokens, nanoUsd: nanoUsd ?? held.nanoUsd, turns: held.turns };
  draft.end(id, () => ({ spent: billed, lost: nothing, unpriced: !priced && nanoUsd === null }));
  // Without a known price there was no bound to bill above; then the caps tell.
  const bound = priced ? held : { ...held, nanoUsd: billed.nanoUsd };
  const found = priced || nanoUsd === null ? undefined : draft.findPassedCap(taskId);
  const excess = findOverbilling(chainOf(draft.ledger.accounts, taskId), bound, billed) ?? found;
  if (excess !== undefined) draft.overran({ ...excess, reservationId: id });
  return true;
}

function charge(draft: Draft, command: Extract<LedgerCommand, { type: "charge" }>): boolean {
  const { taskId, tokens, costUsd, turns } = command;
  requireCount("tokens", tokens);
  requireCount("turns", turns);
  if (draft.ledger.accounts[taskId] === undefined) return false;
  const amount = { tokens, nanoUsd: costUsd === null ? 0 : toNanoUsd(costUsd), turns };
  const unpriced = costUsd === null && tokens > 0;
  draft.spend(taskId, { spent: amount, lost: nothing, unpriced }, nothing);
  const excess = draft.findPassedCap(taskId);
  if (excess !== undefined) draft.overran({ ...excess, reservationId: null });
  return true;
}

function topUp(draft: Draft, command: Extract<LedgerCommand, { type: "topUp" }>): boolean {
  const add = spendOfTopUp(command.add);
  const raised = draft.change(command.taskId, ({ caps, warned }) => ({
    caps: {
      tokens: caps.tokens === null ? null : caps.tokens + add.tokens,
      nanoUsd: caps.nanoUsd === null ? null : caps.nanoUsd + add.nanoUsd,
      turns: caps.turns === null ? null : caps.turns + add.turns,
    },
    // B5: what was raised may be warned of again.
    warned: warned.filter((dimension) => add[unitOf(dimension)] === 0),
  }));
  if (raised) draft.ledger.overrun = null;
  return raised;
}

function reprioritize(draft: Draft, command: Extract<LedgerCommand, { type: "reprioritize" }>): boolean {
  const { taskId, priority } = command;
  if (draft.ledger.waiting.some((each) => each.taskId === taskId))
    draft.ledger = levelPass(draft.ledger, priority);
  const changed = draft.change(taskId, () => ({ priority }));
  draft.ledger = settlePasses(draft.ledger);
  return changed;
}

function closeAccount(draft: Draft, taskId: TaskId): boolean {
  const { open, waiting } = draft.ledger;
  const holder = (each: { readonly taskId: TaskId }): boolean => each.taskId === taskId;
  if (open.some(holder) || waiting.some(holder)) return false;
  if (!draft.change(taskId, () => ({ closed: true }))) return false;
  draft.drop(taskId);
  return true;
}

/** B3: no usage was reported, so it may have cost all that was held. */
function chargedInFull({ held, priced }: Reservation): Ending {
  return { spent: held, lost: held, unpriced: !priced };
}

function requireCount(name: string, count: number): void {
  if (Number.isSafeInteger(count) && count >= 0) return;
  throw new Fault("invalid_argument", `${name} is ${count}: it must be an integer from 0`);
}

const noReservations: readonly Reservation[] = [];

function parentIn(accounts: Ledger["accounts"], { parentId }: Account): Account | undefined {
  return parentId === null ? undefined : accounts[parentId];
}

let lastLabel: CostLabel | undefined;
let lastKey = "";

/** Most often that of the call before. */
function lineKey(label: CostLabel): string {
  if (label !== lastLabel) {
    lastKey = `${label.agentId} ${label.provider} ${label.modelId}`;
    lastLabel = label;
  }
  return lastKey;
}

/** What a reservation comes to. */
interface Ending {
  readonly spent: Spend;
  readonly lost: Spend;
  readonly unpriced: boolean;
}

/** The next ledger while a command is applied to it, and what there is to say about it. Its members are replaced, never changed. */
class Draft {
  ledger: { -readonly [Key in keyof Ledger]: Ledger[Key] };
  #decisions: Decision[] | undefined;
  #warnings: Exhaustion[] | undefined;
  #overrun: Overrun | null = null;

  constructor(ledger: Ledger) {
    this.ledger = { ...ledger };
  }

  finish(): LedgerStep {
    const { decisions, warnings } = refused;
    const outcome = {
      applied: true,
      decisions: this.#decisions ?? decisions,
      warnings: this.#warnings ?? warnings,
      overrun: this.#overrun,
    };
    return { state: this.ledger, outcome };
  }

  put(account: Account): void {
    this.ledger.accounts = { ...this.ledger.accounts, [account.taskId]: account };
  }

  change(taskId: TaskId, changes: (account: Account) => Partial<Account>): boolean {
    const account = this.ledger.accounts[taskId];
    if (account === undefined) return false;
    this.put({ ...account, ...changes(account) });
    return true;
  }

  /** B6: books on the task and every ancestor. */
  spend(taskId: TaskId, { spent, lost, unpriced }: Ending, released: Spend): void {
    const accounts: Record<TaskId, Account> = { ...this.ledger.accounts };
    for (let account = accounts[taskId]; account !== undefined; account = parentIn(accounts, account)) {
      const booked = {
        ...account,
        spent: addSpend(account.spent, spent),
        reserved: released === nothing ? account.reserved : subtractSpend(account.reserved, released),
        lost: lost === nothing ? account.lost : addSpend(account.lost, lost),
        unpriced: account.unpriced + (unpriced ? 1 : 0),
      };
      const warnings = findWarnings(booked);
      accounts[account.taskId] = booked;
      if (warnings.length === 0) continue;
      (this.#warnings ??= []).push(...warnings);
      const warned = warnings.map(({ dimension }) => dimension);
      accounts[account.taskId] = { ...booked, warned: [...booked.warned, ...warned] };
    }
    this.ledger.accounts = accounts;
  }

  find(id: string): Reservation | undefined {
    for (const each of this.ledger.open) if (each.id === id) return each;
    return undefined;
  }

  /** Ends an open reservation with what it comes to. */
  end(id: string, ending: (reservation: Reservation) => Ending): boolean {
    const reservation = this.find(id);
    if (reservation === undefined) return false;
    const { open } = this.ledger;
    this.ledger.open = open.length === 1 ? noReservations : open.filter((each) => each !== reservation);
    const { taskId, held, label } = reservation;
    const end = ending(reservation);
    this.spend(taskId, end, held);
    if (label !== undefined && end.spent !== nothing) this.addLine(label, end);
    return true;
  }

  addLine(label: CostLabel, { spent, lost, unpriced }: Ending): void {
    const { lines } = this.ledger;
    const key = lineKey(label);
    const line = lines[key] ?? { label, calls: 0, spent: nothing, lost: nothing, unpriced: 0 };
    const added: CostLine = {
      label,
      calls: line.calls + 1,
      spent: addSpend(line.spent, spent),
      lost: lost === nothing ? line.lost : addSpend(line.lost, lost),
      unpriced: line.unpriced + (unpriced ? 1 : 0),
    };
    this.ledger.lines = { ...lines, [key]: added };
  }

  /** The nearest cap of the task or an ancestor that is passed by now. */
  findPassedCap(taskId: TaskId): Exhaustion | undefined {
    return chainOf(this.ledger.accounts, taskId)
      .map((account) => findExcess(account, addSpend(account.spent, account.reserved)))
      .find((each) => each !== undefined);
  }

  leave(id: string): boolean {
    const before = this.ledger;
    this.ledger = leaveQueue(before, id, false);
    return this.ledger !== before;
  }

  overran(overrun: Overrun): void {
    this.#overrun = overrun;
    this.ledger.overrun = overrun;
  }

  /** Removes closed accounts without children, upwards. */
  drop(taskId: TaskId): void {
    for (let at: TaskId | null = taskId; at !== null;) {
      const account: Account | undefined = this.ledger.accounts[at];
      if (account === undefined || !account.closed || account.children > 0 || account.parentId === null)
        return;
      const { [at]: _dropped, ...accounts } = this.ledger.accounts;
      this.ledger.accounts = accounts;
      this.change(account.parentId, ({ children }) => ({ children: children - 1 }));
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
      this.ledger = leaveQueue(this.ledger, id, decision.kind === "granted");
      this.decide(request, decision);
    }
  }

  decide(request: ReserveCommand, decision: Decision): void {
    (this.#decisions ??= []).push(decision);
    if (decision.kind === "granted") this.grant(request, decision.outputTokens);
  }

  grant(request: ReserveCommand, outputTokens: number): void {
    const { id, taskId, attempt, label } = request;
    const held = boundOf(request, outputTokens);
    const priced = isPriced(request);
    const reservation: Reservation =
      label === undefined
        ? { id, taskId, attempt, held, priced }
        : { id, taskId, attempt, held, priced, label };
    const accounts: Record<TaskId, Account> = { ...this.ledger.accounts };
    for (let account = accounts[taskId]; account !== undefined; account = parentIn(accounts, account))
      accounts[account.taskId] = { ...account, reserved: addSpend(account.reserved, held) };
    this.ledger.accounts = accounts;
    const { open } = this.ledger;
    this.ledger.open = open.length === 0 ? [reservation] : [...open, reservation];
  }
}
