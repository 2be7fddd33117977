import type { ChatMessage, CompactionStrategy, ToolMessage, ToolResultPart } from "../../kernel/index.ts";
import { cutOutput, shortestCut } from "./cut-text.ts";
import { requireLimit } from "./limit.ts";
import { plainStrategy } from "./plain-strategy.ts";

export interface ToolResultTruncationOptions {
  /** Of one result. 500 unless told. */
  readonly maxChars?: number;
}

/**
 * Shortens the results of tools and says so in them. Errors stay whole, since they are short and matter; so do results the model has
 * not answered to, since it has not read them yet.
 */
export function toolResultTruncation({
  maxChars = 500,
}: ToolResultTruncationOptions = {}): CompactionStrategy {
  requireLimit("maxChars", maxChars, shortestCut);
  return plainStrategy((rawHistory) => {
    const unread = rawHistory.findLastIndex(({ role }) => role === "assistant");
    const shortened = rawHistory.map((message, index) =>
      message.role === "tool" && index < unread ? shorten(message, maxChars) : message,
    );
    return shortened.some((message, index) => message !== rawHistory[index]) ? shortened : rawHistory;
  });
}

/** The same message where nothing in it is too long. */
function shorten(message: ToolMessage, maxChars: number): ChatMessage {
  const content = message.content.map((part): ToolResultPart => {
    if (part.isError) return part;
    const output = cutOutput(part.output, maxChars);
    return output === part.output ? part : { ...part, output };
  });
  return content.some((part, index) => part !== message.content[index]) ? { ...message, content } : message;
}
