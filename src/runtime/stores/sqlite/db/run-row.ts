import type { AgentId, Priority, RunId, RunRecord, SessionId } from "../../../../kernel/index.ts";

/** Where a run stands between owners. A run whose owner is gone is `owned` until someone who looks for work finds out. */
export const RunState = Object.freeze({ READY: 0, OWNED: 1, SUSPENDED: 2, ENDED: 3 });

/** A run as its other rows know it. */
export interface RunKey {
  /** Never given again. */
  readonly id: number;
  readonly runId: RunId;
  readonly agentId: AgentId;
  readonly sessionId: SessionId;
  /** Whose words retention took out of it, as stored. */
  readonly erases?: string | null;
}

/** The columns of a `RunKey`. */
export const runKeyColumns = "id, run_id AS runId, agent_id AS agentId, session_id AS sessionId, erases";

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
    tenantId: row.tenant === noTenant ? null : row.tenant.slice(1),
    userId: row.user_id,
    priority: row.priority,
    agentVersion: row.agent_version,
    createdAt: row.created_at,
  };
}

/** As stored. */
export const noTenant = "-";

/** A text for every tenant, and for none, so that they can be put into one order. */
export function tenantText(tenantId: string | null): string {
  return tenantId === null ? noTenant : `=${tenantId}`;
}
