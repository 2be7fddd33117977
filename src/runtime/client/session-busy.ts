import { Fault, type RunSummary } from "../../kernel/index.ts";

export function sessionBusy({ runId, agentId, sessionId, status, endedAt }: RunSummary): Fault {
  const standing = endedAt === null ? status : `${status}, with orders that it has not read yet`;
  return new Fault(
    "agent_busy",
    `${agentId} is in ${runId} in session ${sessionId}: ${standing}. Wait for its end or cancel it, then delete the session`,
    { details: { runId, agentId, sessionId, status } },
  );
}
