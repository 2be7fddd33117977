import type { AgentId, SessionId } from "../base/identity.ts";
import type { Transcript } from "../messages/transcript.ts";

/** An agent's view of its history. It hides where the history is stored and how it is compacted. */
export interface AgentContext {
  /** Id of the agent whose history this is. */
  readonly agentId: AgentId;
  /** Returns the messages to send to the model now: the history of the session after compaction. */
  getPromptWindow(sessionId: SessionId): Transcript | Promise<Transcript>;
}
