import type { Priority } from "../limits/priority.ts";
import type { AgentId, RunId, SessionId } from "../base/identity.ts";
import type { JsonObject } from "../base/json-value.ts";

/**
 * What a run does: `invocation` answers an input, `compaction` summarises a session, `child` shares the prompt of an
 * invocation (`Runtime.spawnChild`).
 */
export const runKinds = Object.freeze(["invocation", "compaction", "child"] as const);

/** What a run does. */
export type RunKind = (typeof runKinds)[number];

/** What a store knows about a run without reading its commits. Used to schedule the run and to find its agent. */
export interface RunRecord {
  /** Id of the run. */
  readonly runId: RunId;
  /** What the run does. */
  readonly kind: RunKind;
  /** Id of the root agent. */
  readonly agentId: AgentId;
  /** Id of the session. */
  readonly sessionId: SessionId;
  /** Id of the tenant. `null` for a run without a tenant. */
  readonly tenantId: string | null;
  /** Id of the user. `null` for a run without a user. */
  readonly userId: string | null;
  /** Priority of the run. */
  readonly priority: Priority;
  /** J9: version of the agent that started the run. `null` if the agent declares none. */
  readonly agentVersion: string | null;
  /**
   * The beginning of the text of the run's input, as `runTitle` returns it. `null` if the input has no text, or if its
   * text is not kept after the run (`HistoryRetention.NONE` and `RUN`).
   */
  readonly title: string | null;
  /** Data that the caller passed to `submit`. Empty after the end of a run with `HistoryRetention.NONE`. */
  readonly metadata: JsonObject;
  /** Time of creation, in epoch milliseconds. */
  readonly createdAt: number;
  /** L9: time before which the run does not start, in epoch milliseconds. `null` for a run that starts at once. */
  readonly startAt: number | null;
  /** L7: how often a worker died while it owned the run. 0 for a new run. */
  readonly recoveries: number;
}

/** L5: identifies the user and the agent of a run. Runs of one tenant with different keys take turns. */
export function turnKey({ userId, agentId }: Pick<RunRecord, "userId" | "agentId">): string {
  return userId === null ? agentId : `${agentId} ${userId}`;
}

/** L9: whether a run is created with a later start, so that no worker may claim it yet. */
export function startsLater({ startAt, createdAt }: Pick<RunRecord, "startAt" | "createdAt">): boolean {
  return startAt !== null && startAt > createdAt;
}
