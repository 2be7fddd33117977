import type { Priority } from "../limits/priority.ts";
import type { AgentId, RunId, SessionId } from "../base/identity.ts";

/** What is known of a run without reading its commits: whom to schedule, and with which code. */
export interface RunRecord {
  readonly runId: RunId;
  readonly agentId: AgentId;
  readonly sessionId: SessionId;
  readonly tenantId: string | null;
  readonly userId: string | null;
  readonly priority: Priority;
  /** The agent's version at the start (J9). */
  readonly agentVersion: string | null;
  readonly createdAt: number;
}
