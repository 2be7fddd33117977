import type { ChatMessage } from "../messages/chat-message.ts";
import type { AgentId, RunId, SessionId } from "../base/identity.ts";

export interface HistoryKey {
  readonly agentId: AgentId;
  readonly sessionId: SessionId;
}

/**
 * Where an agent's raw messages are read from and kept, for `AgentContext`: usually a view of `Sessions`, or an application's own
 * table. Worker sessions have keys of their own (`sessionWithin`), so none sees another's.
 */
export interface HistoryProvider {
  read(key: HistoryKey): Promise<readonly ChatMessage[]>;
  /** Idempotent by run: messages of a run replace what that run had appended, so a replay does not double them. */
  append(key: HistoryKey, runId: RunId, messages: readonly ChatMessage[]): Promise<void>;
  count(key: HistoryKey): Promise<number>;
  /** Retention RUN: what one run left behind. */
  clearRun(runId: RunId): Promise<void>;
  clear(key: HistoryKey): Promise<void>;
}
