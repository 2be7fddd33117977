import { Fault, type RunSummary } from "../kernel/index.ts";

export function inUse({ runId, agentId, sessionId, status }: RunSummary): Fault {
  return new Fault(
    "agent_busy",
    `${agentId} is in ${runId} in session ${sessionId}: ${status}. Wait for its end or cancel it, then delete the session`,
    { details: { runId, agentId, sessionId, status } },
  );
}
