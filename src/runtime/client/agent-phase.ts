import type { AgentId, AgentPhase, Journal, SessionId, TenantScope } from "../../kernel/index.ts";

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
  for (let after: string | null | undefined; after !== null;) {
    const query = { sessionId, status: ["pending", "running", "waiting", "paused"] } as const;
    const { runs, next } = await journal.list({
      ...query,
      ...owner,
      ...(after !== undefined && { after }),
    });
    for (const run of runs) {
      if (run.endedAt !== null) continue;
      if (run.kind === "compaction") return "compaction";
      if (run.agentId === agentId) phase = "turn";
    }
    after = next;
  }
  return phase;
}
