import type { AgentId, SessionId } from "../base/identity.ts";
import type { Transcript } from "../messages/transcript.ts";

/** An agent's view of its history. It hides where the history is stored and how it is compacted. */
export interface AgentContext {
  /** Id of the agent whose history this is. */
  readonly agentId: AgentId;
  /** Returns the messages to send to the model now: the history of the session after compaction. */
  getPromptWindow(sessionId: SessionId): Transcript | Promise<Transcript>;
  /**
   * Shortens the prompt window of a session because it exceeded the model's context window. The following windows of the
   * session continue from the shortened one. Returns `null` if nothing can be cut. If absent, nothing is shortened.
   */
  shorten?(sessionId: SessionId): Promise<Transcript | null>;
}
