import type { SessionId } from "../base/identity.ts";
import type { RunKind, RunRecord, RunSpend, WaitCause } from "./run-record.ts";
import { runStatuses } from "./run-result.ts";
import type { RunScore, ScoreFilter } from "./run-score.ts";

/** The statuses of a run: those of a run that has not ended, and those with which it may end. */
export const runSummaryStatuses = Object.freeze(["pending", "running", "waiting", ...runStatuses] as const);

/** The statuses of runs that have not ended. A run may also have ended as `paused`: then it has an `endedAt`. */
export const unfinishedStatuses = Object.freeze(["pending", "running", "waiting", "paused"] as const);

/**
 * Status of a run: `pending` until a worker claims it, also again after mail arrived or its time was reached; `running`;
 * `waiting` while every live task only waits; `paused` from `RunHandle.pause` or a crash loop to `resume`; or the status with
 * which it ended.
 */
export type RunSummaryStatus = (typeof runSummaryStatuses)[number];

/**
 * One run in a list. K3: `usage`, `costUsd`, `unreported` and `turns` are as of the last time that the run waited, was
 * paused or ended. For a run that is running, the ledger of `RunHandle.snapshot` has its cost and turns.
 */
export interface RunSummary extends Omit<RunRecord, "sessionId">, RunSpend {
  /** Id of the session in which the run works. Absent for a workflow, which has none. */
  readonly sessionId?: SessionId;
  /** Status of the run. */
  readonly status: RunSummaryStatus;
  /** What a waiting run waits for; `worker` for a pending run, or `host` if only those of one machine may claim it; `crash_loop` for a run that is paused for that. Otherwise empty. */
  readonly waitsFor: readonly WaitCause[];
  /** Time of the last commit, in epoch milliseconds. */
  readonly updatedAt: number;
  /** Time at which the run ended, in epoch milliseconds. `null` while it has not ended, and after it was resumed. */
  readonly endedAt: number | null;
  /** Z3: the scores that count, by name and author. Absent if the run has none. */
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
  /** Z4: selects runs with a score of this name that counts and lies between the bounds. */
  readonly score?: ScoreFilter;
  /** Status, or several accepted statuses. */
  readonly status?: RunSummaryStatus | readonly RunSummaryStatus[];
  /**
   * Order of the runs. `newest`: by `createdAt`, the newest first. `costliest`: by `costUsd`, the highest first and unknown
   * costs last. The cost of a run that works is that of the last time it waited (K3). Default: `newest`.
   */
  readonly sort?: RunSort;
  /** Maximum number of runs per page. Default: 50. */
  readonly limit?: number;
  /** The `next` value of the previous page. If absent, returns the first page. */
  readonly after?: string;
}

/** One page of a list of runs. */
export interface RunPage {
  /** The runs in the order of `RunQuery.sort`. Runs with equal values are in the order in which they were stored, the last first. */
  readonly runs: readonly RunSummary[];
  /**
   * Position of the next page, for `RunQuery.after`. Stays valid when runs are created or deleted meanwhile. `null` for
   * the last page.
   */
  readonly next: string | null;
}

/** Which runs to count: a query without an order and a page. `limit` is the number at which the count ends. Default: 10,000. */
export type RunCountQuery = Omit<RunQuery, "sort" | "after">;

/** The runs that have changed since a position. */
export interface RunChangeList {
  /** The runs as they are now, in no order. Runs that have not changed may be among them. */
  readonly runs: readonly RunSummary[];
  /** Position for the next call. */
  readonly next: string;
}

/** A list of runs that is read page by page: that of a runtime or of a journal. */
interface RunList {
  list(query: RunQuery): Promise<RunPage>;
}

/** Number of runs per page. */
const limit = 500;

/** Yields all runs that a query selects. Reads a page when the caller needs it. */
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

/** Yields the runs that have not ended. A run that ended with the status `paused` is not among them. */
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
