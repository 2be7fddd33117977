import type { RunRecord } from "./run-record.ts";
import type { RunStatus } from "./run-result.ts";

/**
 * Status of a run in a list: `pending` until a worker claims it, `running` with a worker, `suspended` until mail
 * arrives or a time is reached, or the status with which it ended. A run whose worker died stays `running` until
 * another worker finds it.
 */
export type RunSummaryStatus = "pending" | "running" | "suspended" | RunStatus;

/** One run in a list. */
export interface RunSummary extends RunRecord {
  /** Status of the run. */
  readonly status: RunSummaryStatus;
  /** Time of the last commit, in epoch milliseconds. */
  readonly updatedAt: number;
  /** Time at which the run ended, in epoch milliseconds. `null` while it has not ended, and after it was resumed. */
  readonly endedAt: number | null;
}

/** Selects runs. A run must match all given fields. */
export interface RunQuery {
  /** Id of the session. */
  readonly sessionId?: string;
  /** Id of the root agent. */
  readonly agentId?: string;
  /** Id of the tenant. `null` selects runs without a tenant. */
  readonly tenantId?: string | null;
  /** Status, or several accepted statuses. */
  readonly status?: RunSummaryStatus | readonly RunSummaryStatus[];
  /** Maximum number of runs per page. Default: 50. */
  readonly limit?: number;
  /** The `next` value of the previous page. If absent, returns the first page. */
  readonly after?: string;
}

/** One page of a list of runs. */
export interface RunPage {
  /** The runs, newest first. */
  readonly runs: readonly RunSummary[];
  /**
   * Position of the next page, for `RunQuery.after`. Stays valid when runs are created or deleted meanwhile. `null` for
   * the last page.
   */
  readonly next: string | null;
}
