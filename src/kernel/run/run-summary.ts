import type { RunRecord } from "./run-record.ts";
import type { RunStatus } from "./run-result.ts";

/**
 * Where a run stands: not picked up by a worker, with one, left until mail comes or a time is there; or how it ended. A run whose worker
 * is gone is `running` until someone who looks for work finds out.
 */
export type RunSummaryStatus = "pending" | "running" | "suspended" | RunStatus;

export interface RunSummary extends RunRecord {
  readonly status: RunSummaryStatus;
  /** When it last committed something. Epoch milliseconds. */
  readonly updatedAt: number;
  /** `null` while it has not ended, or goes on again. */
  readonly endedAt: number | null;
}

/** Which runs; all that is given must fit. */
export interface RunQuery {
  readonly sessionId?: string;
  /** Of the root. */
  readonly agentId?: string;
  /** `null`: those of no tenant. */
  readonly tenantId?: string | null;
  readonly status?: RunSummaryStatus | readonly RunSummaryStatus[];
  /** 50 unless told. */
  readonly limit?: number;
  /** The `next` of the page before. */
  readonly after?: string;
}

export interface RunPage {
  readonly runs: readonly RunSummary[];
  /** Where the next page begins, also when runs come or go meanwhile; `null` when this was the last. */
  readonly next: string | null;
}
