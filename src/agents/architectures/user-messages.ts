import {
  messageText,
  type AgentSession,
  type ChatMessage,
  type JsonValue,
  type UserPart,
} from "../../kernel/index.ts";
import { opening, readMessage } from "../agent-input.ts";

/** What a user said to a session after its prompt, which was message number `from`. */
export function userMessagesAfter({ messages }: AgentSession, from: number): readonly ChatMessage[] {
  return messages.slice(from + 1).filter(({ role }) => role === "user");
}

/** In words: an attempt that begins anew is to know them, too. */
export function userTextsAfter(session: AgentSession, from: number): readonly string[] {
  return userMessagesAfter(session, from).map(messageText);
}

/** What an architecture was asked, and how much had been said by then. */
export interface AnsweredPrompt {
  readonly prompt: string;
  readonly attachments: readonly UserPart[];
  readonly from: number;
}

/**
 * What a user says to an architecture that keeps no conversation is in the session all the same, after the prompt: for whoever is around it, and
 * for the invocations to come.
 */
export function appendUserMessages(
  session: AgentSession,
  { prompt, attachments, from }: AnsweredPrompt,
  inputs: readonly JsonValue[],
): void {
  if (inputs.length === 0) return;
  if (session.messages.length === from) {
    session.messages = session.messages.append(opening(prompt, attachments));
    session.attachments = [];
  }
  session.messages = session.messages.append(...inputs.map((input) => readMessage(input).message));
}
