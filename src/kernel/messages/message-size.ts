import type { ChatMessage } from "./chat-message.ts";
import type { ContentPart, ToolOutput } from "./content.ts";

/** Counts the tokens of messages. Pass a model's tokenizer if an estimate is not sufficient. */
export type TokenCounter = (messages: readonly ChatMessage[]) => number;

/** The size of an image in characters, independent of its bytes: about 1,600 tokens. */
const charsPerImage = 6_400;
const charsPerToken = 4;
/** Tokens for the role and the separators of one message. */
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
 * Estimates tokens as a quarter of the characters, to decide what to cut. Reservations use a separate upper bound (B1).
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
