import type { UserMessage } from "../messages/chat-message.ts";
import { rootTaskId as taskId, type AgentId, type RunId, type SessionId } from "../base/identity.ts";
import type { SessionChange } from "./sessions.ts";

export interface UserEntryFields {
  readonly sessionId: SessionId;
  readonly agentId: AgentId;
  readonly runId: RunId;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly message: UserMessage;
}

/**
 * S2: what the user said to start a run, under the session's leaf. Its id is the run's, so that whoever writes it again
 * writes nothing.
 */
export function userEntry(
  { sessionId, agentId, runId, at, message }: UserEntryFields,
  visibility: "pending" | "visible",
): SessionChange {
  const entry = { type: "message", id: runId, parentId: null, at, runId, taskId, message } as const;
  return { type: "append", sessionId, agentId, entry, visibility, atLeaf: true };
}
