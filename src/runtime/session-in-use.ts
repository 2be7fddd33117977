import { Fault, type RunStanding, type RunSummary } from "../kernel/index.ts";

/** Of a run that has not ended. */
export const underWay: readonly RunStanding[] = ["pending", "running", "suspended"];

export function inUse({ runId, agentId, sessionId, status }: RunSummary): Fault {
  return new Fault(
    "agent_busy",
    `${agentId} is in ${runId} in session ${sessionId}: ${status}. Wait for its end or cancel it, then delete the session`,
    { details: { runId, agentId, sessionId, status } },
  );
}
