/**
 * What an agent is doing in one session (S5). Invocations, compaction and navigation need `idle`; whoever comes meanwhile gets
 * `agent_busy`. It is `idle` again however the phase ended.
 */
export type AgentPhase = "idle" | "turn" | "compaction";
