import {
  nothingSpent,
  runKinds,
  type AgentId,
  type JsonObject,
  type Lease,
  type LostOwner,
  type Priority,
  type RunFlow,
  type RunId,
  type RunRecord,
  type RunSpend,
  type RunStanding,
  type SessionId,
  type WaitCause,
  totalTokens,
} from "../../../kernel/index.ts";

/**
 * State of a run with respect to its owner. A run whose owner has died stays `OWNED` until a claim notices the
 * death. A `HELD` run would be ready, but a compaction of its session must end first (S5). A `QUEUED` run would be
 * ready, but its limits do not admit it yet (L17).
 */
export const RunState = Object.freeze({ READY: 0, OWNED: 1, SUSPENDED: 2, ENDED: 3, HELD: 4, QUEUED: 5 });

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
  /** L17: JSON of the limits of the run. `null` or absent if it has none. */
  readonly flowText?: string | null;
}

/** A run that a worker has taken. */
export interface TakenRun extends RunKey {
  readonly epoch: number;
  /** L7: 0 after a new commit. */
  readonly recoveries: number;
  /** JSON of the first lost owner in this series of recoveries. */
  readonly lost: string | null;
  /** Time at which the last lost owner was noticed, in epoch milliseconds. */
  readonly lostAt: number | null;
  /** L17: the limit in whose queue the run waits. `null` if the run is admitted. */
  readonly gate: string | null;
}

/** Returns the lease of a run that a worker has claimed. */
export function leaseOf(run: TakenRun, workerId: string): Lease {
  const { runId, epoch, recoveries, lost, lostAt, gate } = run;
  const queued = gate === null ? undefined : ({ isQueued: true } as const);
  if (recoveries === 0 || lost === null) return { runId, epoch, workerId, ...queued };
  const lostOwner = JSON.parse(lost) as LostOwner;
  return { runId, epoch, workerId, recoveries, lostOwner, lostAt: lostAt ?? lostOwner.at, ...queued };
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
  /** JSON. `null` for a run without limits. */
  readonly flow: string | null;
  /** L21: the machine whose workers may claim the run. `null` for a run that any worker may claim. */
  readonly host: string | null;
}

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
    ...(row.host !== null && { host: row.host }),
    ...(row.flow !== null && { flow: JSON.parse(row.flow) as RunFlow }),
  };
}

/** Stored value for a run without a tenant. */
export const noTenant = "-";

/** Returns a text by which all tenants, and the absence of a tenant, can be sorted. */
export function tenantText(tenantId: string | null): string {
  return tenantId === null ? noTenant : `=${tenantId}`;
}

export function tenantOf(text: string): string | null {
  return text === noTenant ? null : text.slice(1);
}

/** Beginning of the stored standing of a waiting run. The reasons for which it waits follow. */
export const waitingText = "waiting";

/** SQL condition for a paused run. It works because `paused` sorts before `waiting`. */
export const isPausedText = `standing < '${waitingText}'`;

/** SQL condition for any other standing. */
export const isNotPausedText = `(standing IS NULL OR standing >= '${waitingText}')`;

/**
 * K1: returns the stored form of a standing: `null` for a running run, or `paused` or `waiting` with the reasons
 * for which the run waits.
 */
export function standingText({ status, waitsFor }: RunStanding): string | null {
  return status === "running" ? null : [status, ...waitsFor].join(" ");
}

export function standingOf(text: string | null): RunStanding | null {
  if (text === null) return null;
  const [status, ...waitsFor] = text.split(" ");
  return { status: status === waitingText ? status : "paused", waitsFor: waitsFor as WaitCause[] };
}

/** K3: returns the stored form of what a run has used. `null` if it has used nothing or the usage is unknown. */
export function spendText(spent: RunSpend | undefined): string | null {
  if (spent === undefined) return null;
  const { usage, unreported, turns } = spent;
  if (turns === 0 && unreported.tokens === 0 && totalTokens(usage) === 0) return null;
  return JSON.stringify(spent);
}

export function spendOf(text: string | null): RunSpend {
  return text === null ? nothingSpent : (JSON.parse(text) as RunSpend);
}
