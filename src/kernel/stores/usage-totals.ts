import type { DrawOutcome, DrawRequest } from "../limits/cap-share.ts";
import type { Lease } from "./lease.ts";
import type { UnreportedSpend } from "../run/run-result.ts";

/** The dimensions by which usage can be grouped. */
export const usageDimensions = Object.freeze(["day", "hour", "agent", "model", "user", "tenant"] as const);

/** The steps of time by which usage can be split. */
export const usageSteps = Object.freeze(["day", "hour"] as const);

/** A step of time by which usage can be split. */
export type UsageStep = (typeof usageSteps)[number];

/** Number of days for which totals are kept by the hour. Older totals are kept by the day. */
export const usageHoursKeptDays = 35;

/** A dimension by which usage can be grouped. */
export type UsageDimension = (typeof usageDimensions)[number];

/** Selects and groups usage. */
export interface UsageQuery {
  /** What each row of the result stands for. */
  readonly by: UsageDimension;
  /**
   * Splits each row by day or hour: one row per value of `by` and time. Cannot be combined with `by: "day"` or `by:
   * "hour"`.
   */
  readonly per?: UsageStep | undefined;
  /** First UTC day, as `2026-11-16`, or first hour, as `2026-11-16T13`. If absent, there is no first day. */
  readonly from?: string | undefined;
  /** Last UTC day or hour, included. If absent, there is no last day. */
  readonly to?: string | undefined;
  /** Selects these values of `by`, at most 100. If absent, all values. */
  readonly keys?: readonly UsageKey[] | undefined;
  /** Id of the tenant whose usage is selected. `null` selects runs without a tenant. If absent, all tenants. */
  readonly tenantId?: string | null | undefined;
  /** Id of the user whose usage is selected. `null` selects runs without a user. If absent, all users. */
  readonly userId?: string | null | undefined;
  /** Name of the agent whose usage is selected. If absent, all agents. */
  readonly agent?: string | undefined;
  /**
   * Model whose usage is selected, as `provider/modelId`. `null` selects runs that called no model. If absent, all
   * models.
   */
  readonly model?: string | null | undefined;
}

/** A value of a dimension. */
export type UsageKey = Pick<UsageRow, "key" | "tenantId">;

/**
 * Details of usage in addition to cost and tokens. Stores of formats before 19 stored neither details nor hours, so
 * that their totals have no details.
 */
export interface UsageDetails {
  /** Whether the details cover all usage of the row. If `false`, they cover only a part of it. */
  readonly isComplete: boolean;
  /** Number of runs. */
  readonly runs: number;
  /**
   * Number of times that a run ended as `failed`, counted at the time of its end. A run that fails again after a
   * resume is counted again.
   */
  readonly failedRuns: number;
  /** Number of model calls with a reply. */
  readonly calls: number;
  /**
   * Number of attempts that the model or the connection to it ended without a reply, including attempts that were
   * repeated.
   */
  readonly failedCalls: number;
  /**
   * Durations of the calls with a reply, from the request to the end of the reply: the number of calls by bucket
   * (`latencyBoundsMs`). `latencyQuantile` evaluates them.
   */
  readonly latency: readonly number[];
}

/** The usage of one day, hour, agent, model, user or tenant. */
export interface UsageRow {
  /**
   * The day, the hour, the agent's name, the model as `provider/modelId`, or the id of the user or the tenant. `null` for runs
   * without a user or a tenant, and for runs that called no model.
   */
  readonly key: string | null;
  /** The tenant of the user. Present only in rows by user, because two tenants may have users with the same id. */
  readonly tenantId?: string | null;
  /** The day or the hour. Present only if the query has `per`. */
  readonly at?: string;
  /** Number of runs. A run counts once, for its root agent and the first model that this agent called. */
  readonly runs: number;
  /** Number of model calls with reported usage. */
  readonly turns: number;
  /** Input tokens that providers reported, including those read from their caches. */
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** The part of `inputTokens` that providers read from their caches. */
  readonly cachedTokens: number;
  /** Total charge, including `unreported`. Calls whose price is unknown are not included. */
  readonly costUsd: number;
  /** B3: charge for calls that ended without reported usage. */
  readonly unreported: UnreportedSpend & { readonly costUsd: number };
  /** Number of calls whose price is unknown. `costUsd` does not include them. */
  readonly unpricedTurns: number;
  /** `null` if none of the usage has details. */
  readonly details: UsageDetails | null;
}

/**
 * What runs have spent, by day and hour, tenant, user, agent and model. A commit that suspends or ends a run holds
 * what is new in `Commit.usage`. Every store passes `usageContract`, which checks:
 *
 * - U1 The usage of a commit is added to the totals if and only if the commit is stored, and once: a commit that is
 *   repeated or refused adds nothing.
 * - U2 Totals are kept when their runs and sessions are deleted.
 * - U3 `sum` returns one row per value of the dimension, in ascending order; `null` comes first. With `per`, the
 *   rows of a value are in the order of time, and times without usage have no row.
 * - U4 Money is added in nano-dollars, so that sums are exact. `likelyUsd` is the sum of `likelyNanoUsd` over the
 *   rows of a day, agent and model. For a row without an estimate, the charge is added; if no row has an estimate,
 *   `likelyUsd` is `null`. A correction (B3) may lower a total.
 * - U5 Usage counts for the tenant and the user of its run. Equal user ids of two tenants are different users.
 * - U6 An unknown dimension and a day that is not in the calendar throw `invalid_argument`.
 * - U7 After a draw, for each cap, the total of the day or the month plus the amounts that runs hold is at most the
 *   cap, also if several processes draw at once. A cap by agent counts the usage of the agent that the draw names,
 *   and the amounts that runs hold for it. `decideDraw` decides what the run gets. A draw of a worker that has lost
 *   the run throws `lease_lost`.
 * - U8 A cap share belongs to its run: the next owner of the run has it. A commit with `usage`, even with an empty
 *   list, lowers the cap shares of its run to `holds`, by `capShareKey`, and returns all of them if that is absent.
 *   The cap share of a deleted run counts until its day is over, and for caps per month until its month is over.
 * - U9 Usage with an hour counts for its day and for that hour. A query whose dimension, step or range is an hour
 *   reads hours. Hours are kept for `usageHoursKeptDays`; days are kept. A correction counts for the hour of its
 *   call.
 *
 * @advanced
 */
export interface UsageTotals {
  sum(query: UsageQuery): Promise<readonly UsageRow[]>;
  /** B7: increases the amount that the run of the lease holds for the day to at least `need`, if the caps allow it. */
  draw(lease: Lease, request: DrawRequest): Promise<DrawOutcome>;
}
