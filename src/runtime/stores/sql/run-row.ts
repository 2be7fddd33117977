import type { TenantScope } from "../../../kernel/index.ts";
import { noTenant, RunState, tenantText } from "../codec/stored-run.ts";

/** SQL condition for the compactions that have not ended. */
export const isCompacting = "kind = 1 AND ended IS NULL AND run_id IS NOT NULL";

/** S5: SQL condition for the runs, named `runs` in the query, whose session another run compacts. */
export const isExcluded = `EXISTS (SELECT 1 FROM {runs} AS other INDEXED BY runs_compacting
  WHERE other.session_id = runs.session_id AND other.id <> runs.id
    AND other.kind = 1 AND other.ended IS NULL AND other.run_id IS NOT NULL)`;

/** SQL condition for the runs that no worker has, that have no work, and that have not ended. */
export const isSuspended = `state = ${RunState.SUSPENDED} AND ended IS NULL`;

/**
 * L17: SQL condition for the runs in the queue of a limit, as in the index `runs_at_gate`. A run that has mail is
 * ready or has an owner, and keeps its place in the queue.
 */
export const isInQueue = `gate IS NOT NULL AND state IN (${RunState.READY}, ${RunState.OWNED}, ${RunState.QUEUED})`;

/**
 * L9: SQL condition for suspended runs whose start time has not come. A run that has started never waits for that
 * time.
 */
export const isScheduled = "((wake_at = start_at) IS TRUE)";

/**
 * K5: SQL for the number of the current change, for `runs.change`. PostgreSQL uses the id of the transaction,
 * because a reader knows which ids may still appear. SQLite, where transactions follow each other, uses the next
 * number (`sqliteText`).
 */
export const changeNumber = "pg_current_xact_id()::text::bigint";

/** SQL assignment that every statement contains which changes the summary of a run. */
export const isChanged = `change = ${changeNumber}`;

/** The columns of a `RunRow`. */
export const runColumns = `run_id, agent_id, session_id, runs.tenant, user_id, priority, agent_version, runs.created_at,
  kind, title, start_at, recoveries_in_all, flow, host, (SELECT body FROM {run_metadata} WHERE run = runs.id) AS metadata`;

/** S6: SQL condition for the rows of a scope, with two parameters from `$first` on. `scopeValues` returns them. */
export function isInScope(first: number): string {
  const [tenant, user] = [`$${first}::text`, `$${first + 1}::text`];
  return `(${tenant} IS NULL OR tenant = ${tenant}) AND (${user} IS NULL OR user_id = ${user})`;
}

/** The parameters of `isInScope`. Every row is in an absent scope. */
export function scopeValues(scope: TenantScope | undefined): readonly [string | null, string | null] {
  return [scope === undefined ? null : tenantText(scope.tenantId), scope?.userId ?? null];
}

/** The columns of a `RunKey`. */
export const runKeyColumns = `id, run_id AS "runId", agent_id AS "agentId", session_id AS "sessionId", erases, flow AS "flowText",
  CASE WHEN tenant = '${noTenant}' THEN NULL ELSE substr(tenant, 2) END AS "tenantId", user_id AS "userId"`;
