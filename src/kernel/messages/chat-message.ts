import type { AssistantPart, ProviderMetadata, ToolCallPart, ToolResultPart, UserPart } from "./content.ts";
import { textOf } from "./content.ts";

interface MessageBase {
  readonly providerMetadata?: ProviderMetadata;
}

export interface SystemMessage extends MessageBase {
  readonly role: "system";
  readonly content: string;
}

export interface UserMessage extends MessageBase {
  readonly role: "user";
  readonly content: readonly UserPart[];
}

export interface AssistantMessage extends MessageBase {
  readonly role: "assistant";
  readonly content: readonly AssistantPart[];
}

/** The results of one assistant message's calls, in the order of the calls. */
export interface ToolMessage extends MessageBase {
  readonly role: "tool";
  readonly content: readonly ToolResultPart[];
}

/** One message of a conversation, in the one form used inside Reeve. Providers' forms are made at the edges. */
export type ChatMessage = SystemMessage | UserMessage | AssistantMessage | ToolMessage;

export function systemMessage(text: string): SystemMessage {
  return { role: "system", content: text };
}

export function userMessage(content: string | readonly UserPart[]): UserMessage {
  return { role: "user", content: typeof content === "string" ? [{ type: "text", text: content }] : content };
}

export function assistantMessage(content: string | readonly AssistantPart[]): AssistantMessage {
  const parts = typeof content === "string" ? [{ type: "text", text: content } as const] : content;
  return { role: "assistant", content: parts };
}

export function toolMessage(content: readonly ToolResultPart[]): ToolMessage {
  return { role: "tool", content };
}

/** The answer to a call. */
export function toolResultPart(
  { callId, toolName }: ToolCallPart,
  { output, isError }: Pick<ToolResultPart, "output" | "isError">,
): ToolResultPart {
  return { type: "tool_result", callId, toolName, output, isError };
}

export function toolCallsOf({ content }: AssistantMessage): readonly ToolCallPart[] {
  // Most often nothing else is in it. Counted by hand: of a frozen list, `every` is slow.
  for (let index = 0; index < content.length; index++)
    if (content[index]?.type !== "tool_call") return content.filter(isCall);
  return content as readonly ToolCallPart[];
}

function isCall(part: AssistantPart): part is ToolCallPart {
  return part.type === "tool_call";
}

export function messageText(message: ChatMessage): string {
  return message.role === "system" ? message.content : textOf(message.content);
}
