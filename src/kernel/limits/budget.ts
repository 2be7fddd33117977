import { toNanoUsdLimit } from "../base/money.ts";
import { is, optionTable, type OptionKinds } from "../base/option-table.ts";
import type { ExecutionBudget } from "./execution-budget.ts";
import type { Exhaustion } from "./ledger.ts";

export type BudgetVerdict =
  | { readonly allowed: true }
  | { readonly allowed: false; readonly exhaustion: Exhaustion };

/**
 * A read-only view of a task's budget for architectures. `ctx.llm` reserves and settles. The numbers are not journaled,
 * so decisions that a replay must repeat may not depend on them.
 */
export interface Budget {
  readonly limits: Omit<ExecutionBudget, "deadlineMs">;
  /** Whether the task and its ancestors have budget left for another turn. */
  allowsTurn(): BudgetVerdict;
  /** The amounts spent so far, including those of children (B6) and unreported ones (B3). */
  spent(): { readonly tokens: number; readonly costUsd: number; readonly turns: number };
}

/** The limit on the agents of a whole run. All tasks of the run share one frozen object. */
export interface SpawnBudget {
  /** H1: maximum number of seats in the run, including the root's. Default: 50. */
  readonly maxAgents: number;
  /** H3: whether a new HIGH or CRITICAL task may pause a task of lower priority to get its seat. Default: `true`. */
  readonly allowPreempt: boolean;
}

export const defaultSpawnBudget: SpawnBudget = Object.freeze({ maxAgents: 50, allowPreempt: true });

const knownOptions = optionTable({
  maxAgents: is.integer({ from: 1, default: 50, hint: "the root counts as one" }),
  allowPreempt: is.boolean({ default: true }),
} satisfies OptionKinds<SpawnBudget>);

/** Completes a spawn budget with the defaults. Throws `invalid_argument` if it is invalid. */
export function spawnBudget(options: Partial<SpawnBudget> = {}): SpawnBudget {
  // The default object is valid and frozen, so it needs no check.
  if (options === defaultSpawnBudget) return defaultSpawnBudget;
  const { maxAgents, allowPreempt } = knownOptions.read("spawnBudget", options);
  return Object.freeze({ maxAgents, allowPreempt });
}

/**
 * B7: caps on what the runs of a store may spend on one UTC day, in USD. `null` or absent means no cap; zero means that
 * nothing may be spent.
 */
export interface SpendingCaps {
  /** All runs together. */
  readonly perDayUsd?: number | null;
  /** The runs of one tenant. Runs without a tenant count as those of one tenant. */
  readonly perTenantPerDayUsd?: number | null;
  /** The runs of one user of one tenant. Runs without a user count as those of one user. */
  readonly perUserPerDayUsd?: number | null;
}

/** The name of a cap. */
export type CapName = keyof SpendingCaps;

/** The caps in nano-dollars. */
export type CapLimits = Readonly<Record<CapName, number | null>>;

/** One US dollar too many for `toNanoUsdLimit`. */
const tooManyUsd = 9_000_000;

const cap = is.number({ from: 0, below: tooManyUsd, or: [null, "no cap"], default: null });
const knownCaps = optionTable({
  perDayUsd: cap,
  perTenantPerDayUsd: cap,
  perUserPerDayUsd: cap,
} satisfies OptionKinds<SpendingCaps>);

/** Checks the caps. Returns `undefined` if there is none. Throws `invalid_argument`. */
export function capLimits(caps: SpendingCaps = {}): CapLimits | undefined {
  const { perDayUsd, perTenantPerDayUsd, perUserPerDayUsd } = knownCaps.read("caps", caps);
  const limits = {
    perDayUsd: limitOf(perDayUsd),
    perTenantPerDayUsd: limitOf(perTenantPerDayUsd),
    perUserPerDayUsd: limitOf(perUserPerDayUsd),
  };
  return Object.values(limits).every((limit) => limit === null) ? undefined : limits;
}

function limitOf(usd: number | null): number | null {
  return usd === null ? null : toNanoUsdLimit(usd);
}
