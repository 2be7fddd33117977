import type { ExecutionBudget } from "./execution-budget.ts";
import type { TaskId } from "./identity.ts";
import {
  nothing,
  type Account,
  type Exhaustion,
  type Ledger,
  type Spend,
  type SpendCaps,
  type SpendDimension,
} from "./ledger.ts";
import { fromNanoUsd, toNanoUsdLimit } from "./money.ts";

/** The dimensions, as the ledger counts them and as a user names them. */
const dimensions = [
  { unit: "tokens", dimension: "tokens" },
  { unit: "nanoUsd", dimension: "costUsd" },
  { unit: "turns", dimension: "turns" },
] as const satisfies readonly { unit: keyof Spend; dimension: SpendDimension }[];

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

/** B1: the first dimension in which `used` is above the account's cap. */
export function findExcess({ taskId, caps }: Account, used: Spend): Exhaustion | undefined {
  for (const { unit, dimension } of dimensions) {
    const cap = caps[unit];
    if (cap !== null && used[unit] > cap) {
      return { taskId, dimension, limit: shown(unit, cap), used: shown(unit, used[unit]) };
    }
  }
  return undefined;
}

/** The soft thresholds that `account.spent` has crossed and nobody was told of. */
export function findWarnings(account: Account): readonly Exhaustion[] {
  let found: Exhaustion[] | undefined;
  for (const { unit, dimension } of dimensions) {
    const cap = account.caps[unit];
    if (cap === null) continue;
    const used = account.spent[unit];
    // A hair below, since the product of a whole number and a share may come out a hair above.
    const threshold = cap * account.warnAt * (1 - Number.EPSILON * 4);
    if (used === 0 || used < threshold || account.warned.includes(dimension)) continue;
    (found ??= []).push({
      taskId: account.taskId,
      dimension,
      limit: shown(unit, cap),
      used: shown(unit, used),
    });
  }
  return found ?? none;
}

const none: readonly Exhaustion[] = [];

/** The dimension, capped for the task or an ancestor, in which more was billed than held. Without a cap it is only a surprise. */
export function findOverbilling(
  accounts: Ledger["accounts"],
  taskId: TaskId,
  held: Spend,
  billed: Spend,
): Exhaustion | undefined {
  for (const { unit, dimension } of dimensions) {
    if (billed[unit] <= held[unit]) continue;
    const capped = cappedIn(accounts, taskId, unit);
    if (capped === undefined) continue;
    return { taskId: capped, dimension, limit: shown(unit, held[unit]), used: shown(unit, billed[unit]) };
  }
  return undefined;
}

/** The nearest, from the task up. */
function cappedIn(accounts: Ledger["accounts"], taskId: TaskId, unit: keyof Spend): TaskId | undefined {
  for (let at: TaskId | null = taskId; at !== null;) {
    const account: Account | undefined = accounts[at];
    if (account === undefined) return undefined;
    if (account.caps[unit] !== null) return at;
    at = account.parentId;
  }
  return undefined;
}

export function newAccount(
  fields: Pick<Account, "taskId" | "parentId" | "priority" | "caps" | "warnAt">,
): Account {
  return {
    ...fields,
    spent: nothing,
    reserved: nothing,
    lost: nothing,
    unpriced: 0,
    warned: [],
    children: 0,
    closed: false,
  };
}

function shown(unit: keyof Spend, amount: number): number {
  return unit === "nanoUsd" ? fromNanoUsd(amount) : amount;
}
