import { describeValue } from "../base/describe-value.ts";
import { Fault } from "../base/fault.ts";
import { toNanoUsdLimit } from "../base/money.ts";
import { checkOptions, optionNames } from "../base/option-check.ts";
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

const knownOptions = optionNames<SpawnBudget>({ maxAgents: true, allowPreempt: true });

/** Completes a spawn budget with the defaults. Throws `invalid_argument` if it is invalid. */
export function spawnBudget(options: Partial<SpawnBudget> = {}): SpawnBudget {
  // The default object is valid and frozen, so it needs no check.
  if (options === defaultSpawnBudget) return defaultSpawnBudget;
  checkOptions("spawnBudget", options, knownOptions);
  const { maxAgents = defaultSpawnBudget.maxAgents, allowPreempt = defaultSpawnBudget.allowPreempt } =
    options;
  if (!Number.isSafeInteger(maxAgents) || maxAgents < 1) {
    throw new Fault(
      "invalid_argument",
      `invalid maxAgents ${describeValue(maxAgents)}: expected an integer from 1, because the root counts as one`,
    );
  }
  if (typeof allowPreempt !== "boolean") {
    throw new Fault(
      "invalid_argument",
      `invalid allowPreempt ${describeValue(allowPreempt)}: expected true or false`,
    );
  }
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

const knownCaps = optionNames<SpendingCaps>({
  perDayUsd: true,
  perTenantPerDayUsd: true,
  perUserPerDayUsd: true,
});

/** Checks the caps. Returns `undefined` if there is none. Throws `invalid_argument`. */
export function capLimits(caps: SpendingCaps = {}): CapLimits | undefined {
  checkOptions("caps", caps, knownCaps);
  const limits = {
    perDayUsd: limitOf("perDayUsd", caps),
    perTenantPerDayUsd: limitOf("perTenantPerDayUsd", caps),
    perUserPerDayUsd: limitOf("perUserPerDayUsd", caps),
  };
  return Object.values(limits).every((limit) => limit === null) ? undefined : limits;
}

/** One US dollar too many for `toNanoUsdLimit`. */
const tooManyUsd = 9_000_000;

function limitOf(name: CapName, caps: SpendingCaps): number | null {
  const usd: unknown = caps[name] ?? null;
  if (usd === null) return null;
  if (typeof usd === "number" && usd >= 0 && usd < tooManyUsd) return toNanoUsdLimit(usd);
  throw new Fault(
    "invalid_argument",
    `invalid ${name} ${describeValue(usd)} of caps: expected a number of US dollars from 0 and below 9 million, or null for no cap`,
  );
}
