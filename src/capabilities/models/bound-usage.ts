import {
  messageText,
  type AssistantMessage,
  type ChatMessage,
  type ModelRequest,
  type ReportedUsage,
} from "../../kernel/index.ts";
import type { CountedUsage } from "./ai-sdk-answer.ts";

/**
 * B1: fills in totals that the provider did not report. An unknown total never counts as zero but as its upper bound:
 * one token per byte of text.
 */
export function boundUsage(
  usage: CountedUsage,
  { messages, maxOutputTokens = Number.POSITIVE_INFINITY }: ModelRequest,
  answer: AssistantMessage,
): ReportedUsage {
  const { inputTokens, outputTokens, ...rest } = usage;
  return {
    ...rest,
    inputTokens: inputTokens ?? messages.reduce((sum, message) => sum + textBytes(message), 0),
    outputTokens: outputTokens ?? Math.min(textBytes(answer), maxOutputTokens),
  };
}

function textBytes(message: ChatMessage): number {
  const inputs =
    message.role === "assistant"
      ? message.content.map((part) => (part.type === "tool_call" ? JSON.stringify(part.input) : ""))
      : [];
  return Buffer.byteLength([messageText(message), ...inputs].join(""));
}
