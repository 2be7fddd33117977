import type { TaskId } from "../base/identity.ts";
import { fromNanoUsd, toNanoUsdLimit } from "../base/money.ts";
import type { ExecutionBudget } from "./execution-budget.ts";
import type { Headcount } from "./headcount.ts";
import {
  type Account,
  type Exhaustion,
  type Ledger,
  nothing,
  type Spend,
  type SpendCaps,
  type SpendDimension,
} from "./ledger.ts";

export function unitOf(dimension: SpendDimension): keyof Spend {
  return dimension === "costUsd" ? "nanoUsd" : dimension;
}

export function addSpend(one: Spend, other: Spend): Spend {
  return {
    tokens: one.tokens + other.tokens,
    nanoUsd: one.nanoUsd + other.nanoUsd,
    turns: one.turns + other.turns,
  };
}

export function subtractSpend(one: Spend, other: Spend): Spend {
  return {
    tokens: one.tokens - other.tokens,
    nanoUsd: one.nanoUsd - other.nanoUsd,
    turns: one.turns - other.turns,
  };
}

export function capsOf({ maxTokens, maxCostUsd, maxTurns }: ExecutionBudget): SpendCaps {
  return {
    tokens: maxTokens,
    nanoUsd: maxCostUsd === null ? null : toNanoUsdLimit(maxCostUsd),
    turns: maxTurns,
  };
}

/** B1: finds the first dimension in which `used` exceeds a cap of the account. */
export function findExcess({ taskId, caps }: Account, used: Spend): Exhaustion | undefined {
  return (
    excess(taskId, "tokens", caps.tokens, used.tokens) ??
    excess(taskId, "costUsd", caps.nanoUsd, used.nanoUsd) ??
    excess(taskId, "turns", caps.turns, used.turns)
  );
}

/**
 * B1: finds the first dimension in which a reservation of at least `needed` does not fit, in addition to what is
 * spent. The result says what did not fit.
 */
export function findRefusal(account: Account, needed: Spend): Exhaustion | undefined {
  const found = findExcess(account, addSpend(account.spent, needed));
  if (found === undefined) return undefined;
  const unit = unitOf(found.dimension);
  const inUnit = (amount: number): number => (unit === "nanoUsd" ? fromNanoUsd(amount) : amount);
  const { caps, spent, lost } = account;
  const refused = {
    reserved: inUnit(needed[unit]),
    remaining: inUnit(Math.max(0, (caps[unit] ?? 0) - spent[unit])),
    spent: inUnit(spent[unit]),
    unreported: inUnit(lost[unit]),
  };
  return { ...found, refused };
}

function excess(
  taskId: TaskId,
  dimension: SpendDimension,
  cap: number | null,
  used: number,
): Exhaustion | undefined {
  return cap !== null && used > cap ? exhaustionOf(taskId, dimension, cap, used) : undefined;
}

/** Returns the soft thresholds that the account has exceeded and that were not yet reported. */
export function findWarnings(account: Account): readonly Exhaustion[] {
  const { caps, spent } = account;
  const tokens = warning(account, "tokens", caps.tokens, spent.tokens);
  const cost = warning(account, "costUsd", caps.nanoUsd, spent.nanoUsd);
  const turns = warning(account, "turns", caps.turns, spent.turns);
  if (tokens === undefined && cost === undefined && turns === undefined) return none;
  return [tokens, cost, turns].filter((each) => each !== undefined);
}

function warning(
  { taskId, warnAt, warned }: Account,
  dimension: SpendDimension,
  cap: number | null,
  used: number,
): Exhaustion | undefined {
  if (cap === null || used === 0) return undefined;
  // The threshold is lowered by a rounding error, because the product of an integer and a fraction may come out
  // slightly too high.
  const threshold = cap * warnAt * (1 - Number.EPSILON * 4);
  if (used < threshold || warned.includes(dimension)) return undefined;
  return exhaustionOf(taskId, dimension, cap, used);
}

const none: readonly Exhaustion[] = [];

/**
 * Finds the dimension in which the provider billed more than was reserved. It must be capped for the task or an
 * ancestor; dimensions without a cap are ignored.
 */
export function findOverbilling(
  accounts: Ledger["accounts"],
  taskId: TaskId,
  held: Spend,
  billed: Spend,
): Exhaustion | undefined {
  const over = (dimension: SpendDimension): Exhaustion | undefined => {
    const unit = unitOf(dimension);
    if (billed[unit] <= held[unit]) return undefined;
    const capped = cappedIn(accounts, taskId, unit);
    return capped && exhaustionOf(capped, dimension, held[unit], billed[unit]);
  };
  // Fast path: nothing was billed above the reservation.
  if (billed.tokens <= held.tokens && billed.nanoUsd <= held.nanoUsd && billed.turns <= held.turns)
    return undefined;
  return over("tokens") ?? over("costUsd") ?? over("turns");
}

/** Returns the nearest task, from this one upwards, whose account has a cap in the unit. */
function cappedIn(accounts: Ledger["accounts"], taskId: TaskId, unit: keyof Spend): TaskId | undefined {
  for (let at: TaskId | null = taskId; at !== null;) {
    const account: Account | undefined = accounts[at];
    if (account === undefined) return undefined;
    if (account.caps[unit] !== null) return at;
    at = account.parentId;
  }
  return undefined;
}

export function newAccount({
  taskId,
  parentId,
  priority,
  caps,
  warnAt,
}: Pick<Account, "taskId" | "parentId" | "priority" | "caps" | "warnAt">): Account {
  return {
    taskId,
    parentId,
    priority,
    caps,
    warnAt,
    spent: nothing,
    reserved: nothing,
    lost: nothing,
    unpriced: 0,
    warned: [],
    children: 0,
    closed: false,
  };
}

/** Describes an exhausted dimension. Amounts are given in the ledger's units. */
function exhaustionOf(taskId: TaskId, dimension: SpendDimension, limit: number, used: number): Exhaustion {
  return dimension === "costUsd"
    ? { taskId, dimension, limit: fromNanoUsd(limit), used: fromNanoUsd(used) }
    : { taskId, dimension, limit, used };
}

/**
 * The current seats and money of a run, as its owner counts them (H4, B1). They are not journaled, so that
 * decisions which a replay must repeat must not depend on them.
 */
export interface RunSnapshot {
  readonly headcount: Headcount;
  readonly ledger: Ledger;
}
