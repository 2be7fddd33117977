import type { UserMessage } from "../messages/chat-message.ts";
import { rootTaskId as taskId, type AgentId, type RunId, type SessionId } from "../base/identity.ts";
import type { SessionChange } from "./sessions.ts";

/** The fields of a user's entry. */
export interface UserEntryFields {
  /** Id of the session. */
  readonly sessionId: SessionId;
  /** Id of the agent that the session belongs to. */
  readonly agentId: AgentId;
  /** Id of the run that the message starts. */
  readonly runId: RunId;
  /** Time of the submission, in epoch milliseconds. */
  readonly at: number;
  /** The user's message. */
  readonly message: UserMessage;
}

/**
 * S2: returns the change that appends the user's message to the session's current entry. The entry has the run's id, so writing
 * it again changes nothing.
 */
export function userEntry(
  { sessionId, agentId, runId, at, message }: UserEntryFields,
  visibility: "pending" | "visible",
): SessionChange {
  const entry = { type: "message", id: runId, parentId: null, at, runId, taskId, message } as const;
  return { type: "append", sessionId, agentId, entry, visibility, atLeaf: true };
}
