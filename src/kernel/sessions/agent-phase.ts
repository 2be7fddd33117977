/**
 * What an agent is doing in one session (S5). Invocations, compaction and navigation start only in phase `idle`; in any
 * other phase they fail with `agent_busy`. The phase returns to `idle` after success and after failure.
 */
export type AgentPhase = "idle" | "turn" | "compaction";
