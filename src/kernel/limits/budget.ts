import { toNanoUsdLimit } from "../base/money.ts";
import { is, optionTable, type OptionKinds } from "../base/option-table.ts";
import type { ExecutionBudget } from "./execution-budget.ts";
import type { Exhaustion } from "./ledger.ts";

export type BudgetVerdict =
  | { readonly allowed: true }
  | { readonly allowed: false; readonly exhaustion: Exhaustion };

/**
 * A read-only view of a task's budget for architectures. `ctx.llm` makes the reservations and charges. The numbers
 * are not journaled, so that decisions which a replay must repeat must not depend on them.
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
 * B7: caps on what the runs of a store may spend in one UTC day or in one UTC month, in USD. `null` or absent means no cap;
 * zero means that nothing may be spent.
 */
export interface SpendingCaps {
  /** All runs together, per day. */
  readonly perDayUsd?: number | null;
  /** Cap on the runs of each tenant, per day. All runs without a tenant count together as one tenant. */
  readonly perTenantPerDayUsd?: number | null;
  /** Cap on the runs of each user of a tenant, per day. All runs without a user count together as one user. */
  readonly perUserPerDayUsd?: number | null;
  /**
   * Cap on the model calls of each agent, by its name, in all runs, per day. Calls of a sub-agent count for the
   * sub-agent.
   */
  readonly perAgentPerDayUsd?: number | null;
  /** All runs together, per month. */
  readonly perMonthUsd?: number | null;
  /** The runs of one tenant, per month. */
  readonly perTenantPerMonthUsd?: number | null;
  /** Cap on the runs of each user of a tenant, per month. */
  readonly perUserPerMonthUsd?: number | null;
  /** Cap on the model calls of each agent, by its name, in all runs, per month. */
  readonly perAgentPerMonthUsd?: number | null;
}

/** The name of a cap. */
export type CapName = keyof SpendingCaps;

/** The caps in nano-dollars. `null` or absent means no cap. */
export type CapLimits = Readonly<Partial<Record<CapName, number | null>>>;

/** What a cap counts, and for how long. */
export interface CapScope {
  readonly of: "store" | "tenant" | "user" | "agent";
  readonly per: "day" | "month";
}

/** The scope of each cap. */
export const capScopes: Readonly<Record<CapName, CapScope>> = Object.freeze({
  perDayUsd: { of: "store", per: "day" },
  perTenantPerDayUsd: { of: "tenant", per: "day" },
  perUserPerDayUsd: { of: "user", per: "day" },
  perAgentPerDayUsd: { of: "agent", per: "day" },
  perMonthUsd: { of: "store", per: "month" },
  perTenantPerMonthUsd: { of: "tenant", per: "month" },
  perUserPerMonthUsd: { of: "user", per: "month" },
  perAgentPerMonthUsd: { of: "agent", per: "month" },
});

/** Whether one of the caps counts by agent. If so, each agent of a run has its own cap share. */
export function capsAgents(caps: CapLimits): boolean {
  return (Object.keys(capScopes) as CapName[]).some(
    (name) => capScopes[name].of === "agent" && (caps[name] ?? null) !== null,
  );
}

/** The first whole amount in US dollars that `toNanoUsdLimit` refuses as too large. */
const tooManyUsd = 9_000_000;

const cap = is.number({ from: 0, below: tooManyUsd, or: [null, "no cap"], default: null });
const knownCaps = optionTable({
  perDayUsd: cap,
  perTenantPerDayUsd: cap,
  perUserPerDayUsd: cap,
  perAgentPerDayUsd: cap,
  perMonthUsd: cap,
  perTenantPerMonthUsd: cap,
  perUserPerMonthUsd: cap,
  perAgentPerMonthUsd: cap,
} satisfies OptionKinds<SpendingCaps>);

/**
 * Checks the caps and converts them. Returns `undefined` if there are no caps. Throws `invalid_argument` for a
 * wrong value.
 */
export function capLimits(caps: SpendingCaps = {}): CapLimits | undefined {
  const read = knownCaps.read("caps", caps);
  const names = (Object.keys(capScopes) as CapName[]).filter((name) => read[name] !== null);
  if (names.length === 0) return undefined;
  return Object.fromEntries(names.map((name) => [name, limitOf(read[name])]));
}

/**
 * Returns the caps of a run: those of the runtime combined with those of its root agent. If both set a cap of the
 * same scope, the lower one applies. `undefined` if there are no caps.
 */
export function capsOfRun(caps: CapLimits | undefined, own: SpendingCaps | undefined): CapLimits | undefined {
  const limits = own && capLimits(own);
  if (caps === undefined || limits === undefined) return caps ?? limits;
  const lower = (name: CapName): number | null => {
    const both = [caps[name] ?? null, limits[name] ?? null].filter((each) => each !== null);
    return both.length === 0 ? null : Math.min(...both);
  };
  return Object.fromEntries((Object.keys(capScopes) as CapName[]).map((name) => [name, lower(name)]));
}

function limitOf(usd: number | null): number | null {
  return usd === null ? null : toNanoUsdLimit(usd);
}
