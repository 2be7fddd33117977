import {
  type AssistantPart,
  type ContentPart,
  type ProviderMetadata,
  textOf,
  type ToolCallPart,
  type ToolOutput,
  type ToolResultPart,
  type UserPart,
} from "./content.ts";

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

const opening = "What was said before, in summary:\n\n<summary>\n";
const closing = "\n</summary>";

/**
 * Creates the message that replaces compacted messages. The next compaction recognises the message and updates its
 * summary.
 */
export function summaryMessage(summary: string): UserMessage {
  return {
    role: "user",
    content: [{ type: "text", text: `${opening}${summary}${closing}` }],
    providerMetadata: { reeve: { summary: true } },
  };
}

/** Whether `summaryMessage` created the message. */
export function isSummary({ role, providerMetadata }: ChatMessage): boolean {
  return role === "user" && providerMetadata?.["reeve"]?.["summary"] === true;
}

/** Returns the summary in a message that `summaryMessage` created. `null` for any other message. */
export function summaryOf(message: ChatMessage): string | null {
  return isSummary(message) ? messageText(message).slice(opening.length, -closing.length) : null;
}

/** Counts the tokens of messages. Pass a model's tokenizer if an estimate is not sufficient. */
export type TokenCounter = (messages: readonly ChatMessage[]) => number;

/**
 * The size of an image in characters that the estimate of tokens assumes, whatever its size in bytes. It means
 * about 1,600 tokens.
 */
const charsPerImage = 6_400;
const charsPerToken = 4;
/** Number of tokens that the estimate adds for the role and the separators of one message. */
const tokensPerMessage = 4;

/** Cached sizes; messages never change. */
const measured = new WeakMap<ChatMessage, number>();

function charsOf(message: ChatMessage): number {
  const known = measured.get(message);
  if (known !== undefined) return known;
  const chars =
    message.role === "system" ? message.content.length : sum(message.content.map((part) => partChars(part)));
  measured.set(message, chars);
  return chars;
}

export function charsOfAll(messages: readonly ChatMessage[]): number {
  return sum(messages.map(charsOf));
}

/**
 * Estimates tokens as a quarter of the characters. The estimate decides what to cut; reservations use a separate
 * upper bound (B1).
 */
export const estimateTokens: TokenCounter = (messages) =>
  sum(messages.map((message) => Math.ceil(charsOf(message) / charsPerToken) + tokensPerMessage));

export function outputChars(output: ToolOutput): number {
  if (output.type === "text") return output.text.length;
  if (output.type === "json") return JSON.stringify(output.value).length;
  return sum(output.parts.map((part) => partChars(part)));
}

function partChars(part: ContentPart): number {
  switch (part.type) {
    case "text":
    case "reasoning":
      return part.text.length;
    case "image":
      return charsPerImage;
    case "file":
      return part.source.kind === "base64" ? part.source.data.length : charsPerImage;
    case "tool_call":
      return part.toolName.length + JSON.stringify(part.input).length;
    case "opaque":
      return JSON.stringify(part.value).length;
    case "tool_result":
      return outputChars(part.output);
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
