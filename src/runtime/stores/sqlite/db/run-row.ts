import type {
  AgentId,
  Priority,
  RunId,
  RunRecord,
  RunStanding,
  SessionId,
  WaitCause,
} from "../../../../kernel/index.ts";

/** Ownership of a run. A run whose owner has died stays `OWNED` until a claim notices the death. */
export const RunState = Object.freeze({ READY: 0, OWNED: 1, SUSPENDED: 2, ENDED: 3 });

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
}

/** The columns of a `RunRow`. */
export const runColumns =
  "run_id, agent_id, session_id, tenant, user_id, priority, agent_version, created_at";

export function recordOf(row: RunRow): RunRecord {
  return {
    runId: row.run_id,
    agentId: row.agent_id,
    sessionId: row.session_id,
    tenantId: tenantOf(row.tenant),
    userId: row.user_id,
    priority: row.priority,
    agentVersion: row.agent_version,
    createdAt: row.created_at,
  };
}

/** L5: SQL of the user that decides whose turn it is. Runs without a user are one party. */
export const turnUser = "ifnull(user_id, '')";

/** Stored value for a run without a tenant. */
export const noTenant = "-";

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
