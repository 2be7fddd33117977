import {
  eventDraft,
  messageText,
  type AgentSession,
  type ChatMessage,
  type JsonValue,
  type RunContext,
  type UserMessage,
  type UserMessageSource,
  type UserPart,
} from "../../kernel/index.ts";
import { opening, readMessage } from "./agent-input.ts";

/** Returns the messages that the user added after the prompt. The prompt is the message with index `from`. */
export function userMessagesAfter({ messages }: AgentSession, from: number): readonly ChatMessage[] {
  return messages.slice(from + 1).filter(({ role }) => role === "user");
}

/** Returns the texts that the user added after the prompt, for calls that see only the prompt. */
export function userTextsAfter(session: AgentSession, from: number): readonly string[] {
  return userMessagesAfter(session, from).map(messageText);
}

/** The prompt of an invocation and its position in the session. */
export interface AnsweredPrompt {
  readonly prompt: string;
  readonly attachments: readonly UserPart[];
  /** Index of the prompt in the session: the number of messages before it. */
  readonly from: number;
}

/** Appends user messages to a session and emits them, so that the result of the run contains them too. */
export function addUserMessages(
  session: AgentSession,
  ctx: Pick<RunContext, "emitEvent">,
  messages: readonly UserMessage[],
  source: UserMessageSource,
): void {
  session.messages = session.messages.append(...messages);
  for (const message of messages) ctx.emitEvent(eventDraft("user_message", { message, source }));
}

/**
 * Appends user input to the session of an architecture that keeps no conversation itself, after the prompt.
 * Architectures that wrap it and later invocations see the input there.
 */
export function appendUserMessages(
  session: AgentSession,
  ctx: Pick<RunContext, "emitEvent">,
  { prompt, attachments, from }: AnsweredPrompt,
  inputs: readonly JsonValue[],
): void {
  if (inputs.length === 0) return;
  if (session.messages.length === from) {
    session.messages = session.messages.append(opening(prompt, attachments));
    session.attachments = [];
  }
  const messages = inputs.flatMap((input) => readMessage(input).message ?? []);
  addUserMessages(session, ctx, messages, "steering");
}
