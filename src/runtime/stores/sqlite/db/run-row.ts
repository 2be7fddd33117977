import {
  nothingSpent,
  runKinds,
  type AgentId,
  type JsonObject,
  type Priority,
  type RunId,
  type RunRecord,
  type RunSpend,
  type RunStanding,
  type SessionId,
  type TenantScope,
  type WaitCause,
} from "../../../../kernel/index.ts";

/**
 * Ownership of a run. A run whose owner has died stays `OWNED` until a claim notices the death. A `HELD` run would be ready,
 * but a compaction of its session has to end first (S5).
 */
export const RunState = Object.freeze({ READY: 0, OWNED: 1, SUSPENDED: 2, ENDED: 3, HELD: 4 });

/** SQL condition for the compactions that have not ended. */
export const isCompacting = "kind = 1 AND ended IS NULL AND run_id IS NOT NULL";

/** S5: SQL condition for the runs whose session another run compacts. */
export const isExcluded = `EXISTS (SELECT 1 FROM runs AS other INDEXED BY runs_compacting
  WHERE other.session_id = runs.session_id AND other.id <> runs.id
    AND other.kind = 1 AND other.ended IS NULL AND other.run_id IS NOT NULL)`;

/** SQL condition for the runs that no worker has, that have no work, and that have not ended. */
export const isSuspended = `state = ${RunState.SUSPENDED} AND ended IS NULL`;

/** L9: SQL condition for suspended runs whose start time lies ahead. A run that has started never waits for that time. */
export const isScheduled = "((wake_at = start_at) IS TRUE)";

/** The identity of a run, as other tables refer to it. */
export interface RunKey {
  /** Row id. It is never reused. */
  readonly id: number;
  readonly runId: RunId;
  readonly agentId: AgentId;
  readonly sessionId: SessionId;
  readonly tenantId: string | null;
  readonly userId: string | null;
  /** JSON of the erasures that retention ordered for this run. */
  readonly erases?: string | null;
}

export interface RunRow {
  readonly run_id: RunId;
  readonly agent_id: AgentId;
  readonly session_id: SessionId;
  readonly tenant: string;
  readonly user_id: string | null;
  readonly priority: Priority;
  readonly agent_version: string | null;
  readonly created_at: number;
  readonly kind: number;
  readonly title: string | null;
  readonly start_at: number | null;
  readonly recoveries_in_all: number;
  /** JSON. `null` for a run without metadata. */
  readonly metadata: string | null;
}

/** The columns of a `RunRow`. */
export const runColumns = `run_id, agent_id, session_id, tenant, user_id, priority, agent_version, created_at,
  kind, title, start_at, recoveries_in_all, (SELECT body FROM run_metadata WHERE run = runs.id) AS metadata`;

const noMetadata: JsonObject = Object.freeze({});

export function recordOf(row: RunRow): RunRecord {
  return {
    runId: row.run_id,
    kind: runKinds[row.kind] ?? "invocation",
    agentId: row.agent_id,
    sessionId: row.session_id,
    tenantId: tenantOf(row.tenant),
    userId: row.user_id,
    priority: row.priority,
    agentVersion: row.agent_version,
    title: row.title,
    metadata: row.metadata === null ? noMetadata : (JSON.parse(row.metadata) as JsonObject),
    createdAt: row.created_at,
    startAt: row.start_at,
    recoveries: row.recoveries_in_all,
  };
}

/** L5: SQL of the user that decides whose turn it is. Runs without a user are one party. */
export const turnUser = "ifnull(user_id, '')";

/** Stored value for a run without a tenant. */
export const noTenant = "-";

/** S6: SQL condition for the rows of a scope. `scopeValues` returns its four parameters. */
export const isInScope = "(? IS NULL OR tenant = ?) AND (? IS NULL OR user_id = ?)";

/** The parameters of `isInScope`. Every row is in an absent scope. */
export function scopeValues(scope: TenantScope | undefined): readonly (string | null)[] {
  const tenant = scope === undefined ? null : tenantText(scope.tenantId);
  const user = scope?.userId ?? null;
  return [tenant, tenant, user, user];
}

/** The columns of a `RunKey`. */
export const runKeyColumns = `id, run_id AS runId, agent_id AS agentId, session_id AS sessionId, erases,
  CASE WHEN tenant = '${noTenant}' THEN NULL ELSE substr(tenant, 2) END AS tenantId, user_id AS userId`;

/** Returns a text that sorts all tenants, and the absence of a tenant, into one order. */
export function tenantText(tenantId: string | null): string {
  return tenantId === null ? noTenant : `=${tenantId}`;
}

export function tenantOf(text: string): string | null {
  return text === noTenant ? null : text.slice(1);
}

/** Stored standing of a paused run. */
export const pausedText = "paused";

/** Stored standing of a waiting run, before what it waits for. */
export const waitingText = "waiting";

/** K1: the stored form of a standing: `null` for a running run, `paused`, or `waiting` and what the run waits for. */
export function standingText({ status, waitsFor }: RunStanding): string | null {
  if (status === "running") return null;
  return status === "paused" ? pausedText : [waitingText, ...waitsFor].join(" ");
}

export function standingOf(text: string | null): RunStanding | null {
  if (text === null) return null;
  if (text === pausedText) return { status: "paused", waitsFor: [] };
  return { status: "waiting", waitsFor: text.split(" ").slice(1) as WaitCause[] };
}

/** K3: the stored form of what a run has used. `null` if it is nothing or unknown. */
export function spendText(spent: RunSpend | undefined): string | null {
  if (spent === undefined || (spent.turns === 0 && spent.unreported.tokens === 0)) return null;
  return JSON.stringify(spent);
}

export function spendOf(text: string | null): RunSpend {
  return text === null ? nothingSpent : (JSON.parse(text) as RunSpend);
}
