import type { AssistantPart, ProviderMetadata, ToolCallPart, ToolResultPart, UserPart } from "./content.ts";
import { textOf } from "./content.ts";

interface MessageBase {
  /** Data that must be sent back to the provider unchanged. */
  readonly providerMetadata?: ProviderMetadata;
}

/** A message with instructions for the model. */
export interface SystemMessage extends MessageBase {
  readonly role: "system";
  /** Text of the instructions. */
  readonly content: string;
}

/** A message of the user. */
export interface UserMessage extends MessageBase {
  readonly role: "user";
  /** Text, images and files. */
  readonly content: readonly UserPart[];
}

/** A message of the model. */
export interface AssistantMessage extends MessageBase {
  readonly role: "assistant";
  /** Text, reasoning, files and tool calls. */
  readonly content: readonly AssistantPart[];
}

/** The results of the tool calls of one assistant message. */
export interface ToolMessage extends MessageBase {
  readonly role: "tool";
  /** The results, in the order of the calls. */
  readonly content: readonly ToolResultPart[];
}

/**
 * One message of a conversation, in the form that Reeve uses internally. Model adapters convert it to the form of each
 * provider.
 */
export type ChatMessage = SystemMessage | UserMessage | AssistantMessage | ToolMessage;

/** Creates a system message. */
export function systemMessage(text: string): SystemMessage {
  return { role: "system", content: text };
}

/** Creates a user message from a text or from content parts. */
export function userMessage(content: string | readonly UserPart[]): UserMessage {
  return { role: "user", content: typeof content === "string" ? [{ type: "text", text: content }] : content };
}

/** Creates an assistant message from a text or from content parts. */
export function assistantMessage(content: string | readonly AssistantPart[]): AssistantMessage {
  const parts = typeof content === "string" ? [{ type: "text", text: content } as const] : content;
  return { role: "assistant", content: parts };
}

/** Creates a message with the results of tool calls. */
export function toolMessage(content: readonly ToolResultPart[]): ToolMessage {
  return { role: "tool", content };
}

/** Creates the result part that answers a tool call. */
export function toolResultPart(
  { callId, toolName }: ToolCallPart,
  { output, isError }: Pick<ToolResultPart, "output" | "isError">,
): ToolResultPart {
  return { type: "tool_result", callId, toolName, output, isError };
}

/** Returns the tool calls of an assistant message, in order. */
export function toolCallsOf({ content }: AssistantMessage): readonly ToolCallPart[] {
  // Most messages with calls contain nothing else, so no copy is made. A loop, because V8 does not inline `every` for
  // arrays with
  // PACKED_FROZEN_ELEMENTS. Benchmark row: "turn in memory".
  for (let index = 0; index < content.length; index++)
    if (content[index]?.type !== "tool_call") return content.filter(isCall);
  return content as readonly ToolCallPart[];
}

function isCall(part: AssistantPart): part is ToolCallPart {
  return part.type === "tool_call";
}

/** Returns the text of a message, without its other parts. */
export function messageText(message: ChatMessage): string {
  return message.role === "system" ? message.content : textOf(message.content);
}
