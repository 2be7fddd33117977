import {
  unfinishedRuns,
  type AgentId,
  type AgentPhase,
  type Journal,
  type SessionId,
  type TenantScope,
} from "../../kernel/index.ts";

/**
 * Returns what an agent does in a session: `compaction` if the session is being compacted, `turn` if a run of the agent
 * has not ended, otherwise `idle`. Counts only the runs of `owner`. If `owner` is absent, all runs count.
 */
export async function agentPhase(
  journal: Pick<Journal, "list">,
  sessionId: SessionId,
  agentId: AgentId,
  owner: TenantScope | undefined,
): Promise<AgentPhase> {
  let phase: AgentPhase = "idle";
  for await (const run of unfinishedRuns(journal, { sessionId, ...owner })) {
    if (run.kind === "compaction") return "compaction";
    if (run.agentId === agentId) phase = "turn";
  }
  return phase;
}
