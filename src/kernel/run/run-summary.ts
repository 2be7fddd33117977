import type { SessionId } from "../base/identity.ts";
import type { RunKind, RunRecord, RunSpend, WaitCause } from "./run-record.ts";
import { runStatuses } from "./run-result.ts";
import type { RunScore, ScoreFilter } from "./run-score.ts";

/** The statuses of a run: first those of a run that has not ended, then those with which a run can end. */
export const runSummaryStatuses = Object.freeze(["pending", "running", "waiting", ...runStatuses] as const);

/**
 * The statuses of runs that have not ended. A run that ended can also have the status `paused`; it then has an
 * `endedAt`.
 */
export const unfinishedStatuses = Object.freeze(["pending", "running", "waiting", "paused"] as const);

/**
 * Status of a run: `pending` until a worker claims it, also when mail has arrived or its time is reached;
 * `running`; `waiting` while every live task only waits; `paused` from a call of `RunHandle.pause` or a crash loop
 * until `resume`; or the status with which the run ended.
 */
export type RunSummaryStatus = (typeof runSummaryStatuses)[number];

/**
 * One run in a list. K3: `usage`, `costUsd`, `unreported` and `turns` are as of the last time that the run waited,
 * was paused or ended. For a running run, read the current cost and turns from the ledger of `RunHandle.snapshot`.
 */
export interface RunSummary extends Omit<RunRecord, "sessionId">, RunSpend {
  /** Id of the session in which the run works. Absent for a workflow, because workflows have no session. */
  readonly sessionId?: SessionId;
  /** Status of the run. */
  readonly status: RunSummaryStatus;
  /**
   * The reasons for which the run waits. A pending run waits for `worker`, or for `host` if only workers of one
   * machine may claim it. A run that is paused as a crash loop has `crash_loop`. Otherwise empty.
   */
  readonly waitsFor: readonly WaitCause[];
  /** Time of the last commit, in epoch milliseconds. */
  readonly updatedAt: number;
  /** Time at which the run ended, in epoch milliseconds. `null` if it has not ended or was resumed. */
  readonly endedAt: number | null;
  /** Z3: the current scores, by name and author. Absent if the run has no scores. */
  readonly scores?: readonly RunScore[];
}

/** The orders of a list of runs. */
export const runSorts = Object.freeze(["newest", "costliest"] as const);

export type RunSort = (typeof runSorts)[number];

/** Selects runs. A run must match all given fields. */
export interface RunQuery {
  /** Id of the session. */
  readonly sessionId?: string;
  /** Id of the root agent. */
  readonly agentId?: string;
  /** Name of the root agent, whatever its key. */
  readonly agentName?: string;
  /** Id of the tenant. `null` selects runs without a tenant. */
  readonly tenantId?: string | null;
  /** Id of the user. `null` selects runs without a user. */
  readonly userId?: string | null;
  /** What the run does. */
  readonly kind?: RunKind;
  /** Selects runs that were created after this time, in epoch milliseconds. */
  readonly createdAfter?: number;
  /** Selects runs that were created before this time, in epoch milliseconds. */
  readonly createdBefore?: number;
  /** Selects runs that ended after this time, in epoch milliseconds. */
  readonly endedAfter?: number;
  /** Selects runs that ended before this time, in epoch milliseconds. */
  readonly endedBefore?: number;
  /** Selects runs whose `costUsd` is known and greater than this. */
  readonly costAbove?: number;
  /** Selects runs whose `costUsd` is known and less than this. */
  readonly costBelow?: number;
  /**
   * Selects runs whose metadata has all these strings at its top level. Name and value together have at most 1,024
   * characters; longer strings of the metadata are never selected.
   */
  readonly metadata?: Readonly<Record<string, string>>;
  /** Z4: selects runs with a current score of this name that lies between the bounds. */
  readonly score?: ScoreFilter;
  /** Status, or several accepted statuses. */
  readonly status?: RunSummaryStatus | readonly RunSummaryStatus[];
  /**
   * Order of the runs. `newest`: by `createdAt`, the newest first. `costliest`: by `costUsd`, the highest first and
   * unknown costs last. For a running run, the cost of the last time at which it waited is used (K3). Default:
   * `newest`.
   */
  readonly sort?: RunSort;
  /** Maximum number of runs per page. Default: 50. */
  readonly limit?: number;
  /** The `next` value of the previous page. If absent, returns the first page. */
  readonly after?: string;
}

/** One page of a list of runs. */
export interface RunPage {
  /**
   * The runs in the order of `RunQuery.sort`. Runs with equal values are ordered by the time at which they were
   * stored, newest first.
   */
  readonly runs: readonly RunSummary[];
  /**
   * Position of the next page, for `RunQuery.after`. It stays valid when runs are created or deleted between two
   * reads. `null` on the last page.
   */
  readonly next: string | null;
}

/**
 * Which runs to count: a query without order and page. `limit` is the number at which the count stops. Default:
 * 10,000.
 */
export type RunCountQuery = Omit<RunQuery, "sort" | "after">;

/** The runs that have changed since a position. */
export interface RunChangeList {
  /** The runs with their current state, in no particular order. The list may contain runs that have not changed. */
  readonly runs: readonly RunSummary[];
  /** Position for the next call. */
  readonly next: string;
}

/** A list of runs that is read page by page. A runtime and a journal have such a list. */
interface RunList {
  list(query: RunQuery): Promise<RunPage>;
}

/** Number of runs per page. */
const limit = 500;

/** Yields all runs that a query selects. It reads a page only when the caller needs it. */
export async function* allRuns(
  source: RunList,
  query: Omit<RunQuery, "limit" | "after">,
): AsyncIterable<RunSummary> {
  let after: string | null = null;
  do {
    const page: RunPage = await source.list({ ...query, limit, ...(after !== null && { after }) });
    yield* page.runs;
    after = page.next;
  } while (after !== null);
}

/** Yields the runs that have not ended. It skips runs that ended with the status `paused`. */
export async function* unfinishedRuns(
  source: RunList,
  query: Omit<RunQuery, "status" | "limit" | "after"> = {},
): AsyncIterable<RunSummary> {
  for await (const run of allRuns(source, { ...query, status: unfinishedStatuses }))
    if (run.endedAt === null) yield run;
}

/** Returns the newest of the runs that have not ended. */
export async function firstUnfinishedRun(
  source: RunList,
  query: Omit<RunQuery, "status" | "limit" | "after"> = {},
): Promise<RunSummary | undefined> {
  for await (const run of unfinishedRuns(source, query)) return run;
  return undefined;
}
