import type { ChatMessage } from "../messages/chat-message.ts";
import type { RunMeta } from "../run/run-meta.ts";
import type { AgentId, RunId, SessionId } from "../base/identity.ts";

/** Identifies one history: an agent's messages in one session. */
export interface HistoryKey {
  /** Id of the agent. */
  readonly agentId: AgentId;
  /** Id of the session. */
  readonly sessionId: SessionId;
}

/**
 * Stores the raw messages of agents for `AgentContext`. Usually a view of `Sessions`, or a table of the application.
 * Sessions of workers have separate ids (`sessionWithin`), so no agent reads the history of another.
 */
export interface HistoryProvider {
  /** Returns all messages of a history, oldest first. `meta` is the run that reads; absent outside a run. */
  read(key: HistoryKey, meta?: RunMeta): Promise<readonly ChatMessage[]>;
  /**
   * Appends the messages of a run. Messages that the same run appended to this history before are replaced, so a replay
   * adds no duplicates; a later task of the run passes them again. Not called with `HistoryRetention.NONE`. `meta` is the run that appends, with its tenant and trace; absent outside a run.
   */
  append(key: HistoryKey, runId: RunId, messages: readonly ChatMessage[], meta?: RunMeta): Promise<void>;
  /** Returns the number of messages of a history. */
  count(key: HistoryKey): Promise<number>;
  /**
   * Deletes all messages that a run appended. Called after the commit that ends a run with `HistoryRetention.RUN`,
   * whatever its status, and repeated, also by later owners, until it succeeds.
   */
  clearRun(runId: RunId): Promise<void>;
  /** Deletes all messages of a history. */
  clear(key: HistoryKey): Promise<void>;
}
