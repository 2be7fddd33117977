import type { Priority } from "../limits/priority.ts";
import type { AgentId, RunId, SessionId } from "../base/identity.ts";

/** What a store knows about a run without reading its commits. Used to schedule the run and to find its agent. */
export interface RunRecord {
  /** Id of the run. */
  readonly runId: RunId;
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
  /** Time of creation, in epoch milliseconds. */
  readonly createdAt: number;
}

/** L5: identifies the user and the agent of a run. Runs of one tenant with different keys take turns. */
export function turnKey({ userId, agentId }: Pick<RunRecord, "userId" | "agentId">): string {
  return userId === null ? agentId : `${agentId} ${userId}`;
}
