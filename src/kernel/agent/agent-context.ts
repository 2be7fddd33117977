import type { AgentId, SessionId } from "../base/identity.ts";
import type { Transcript } from "../messages/transcript.ts";

/** All an agent's loop sees of its history: where it is kept and how it is trimmed stay behind this. */
export interface AgentContext {
  readonly agentId: AgentId;
  /** The messages to send now: history of the session, compacted. */
  getPromptWindow(sessionId: SessionId): Transcript | Promise<Transcript>;
}
