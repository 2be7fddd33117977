import type { UserMessage } from "../messages/chat-message.ts";
import { rootTaskId as taskId, type AgentId, type RunId, type SessionId } from "../base/identity.ts";
import type { SessionChange } from "./sessions.ts";

/** The fields of a user's entry. */
export interface UserEntryFields {
  /** Id of the session. */
  readonly sessionId: SessionId;
  /** Id of the agent to which the session belongs. */
  readonly agentId: AgentId;
  /** Id of the run that the message starts. */
  readonly runId: RunId;
  /** Time of the submission, in epoch milliseconds. */
  readonly at: number;
  /** The user's message. */
  readonly message: UserMessage;
}

/**
 * S2: returns the change that appends the user's message to the session's current entry. The id of the entry is the
 * run's id, so that a second write of it changes nothing.
 */
export function userEntry(
  { sessionId, agentId, runId, at, message }: UserEntryFields,
  visibility: "pending" | "visible",
): SessionChange {
  const entry = { type: "message", id: runId, parentId: null, at, runId, taskId, message } as const;
  return { type: "append", sessionId, agentId, entry, visibility, atLeaf: true };
}
