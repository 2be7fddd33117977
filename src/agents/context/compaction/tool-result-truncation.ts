import {
  type ChatMessage,
  type CompactionStrategy,
  type ToolMessage,
  type ToolResultPart,
  is,
  optionTable,
  type OptionKinds,
} from "../../../kernel/index.ts";
import { cutOutput, shortestCut } from "./cut-output.ts";
import { plainStrategy } from "./plain-strategy.ts";

export interface ToolResultTruncationOptions {
  /** Maximum number of characters of one result. Default: 500. */
  readonly maxChars?: number;
}

const knownOptions = optionTable({
  maxChars: is.integer({ from: shortestCut, default: 500 }),
} satisfies OptionKinds<ToolResultTruncationOptions>);

/**
 * Creates a strategy that shortens tool results and marks the omission. It does not shorten errors, because they
 * are short and important, and results that the model has not answered yet, because it has not read them.
 */
export function toolResultTruncation(options: ToolResultTruncationOptions = {}): CompactionStrategy {
  const { maxChars } = knownOptions.read("toolResultTruncation()", options);
  return plainStrategy((rawHistory) => {
    const unread = rawHistory.findLastIndex(({ role }) => role === "assistant");
    const shortened = rawHistory.map((message, index) =>
      message.role === "tool" && index < unread ? shorten(message, maxChars) : message,
    );
    return shortened.some((message, index) => message !== rawHistory[index]) ? shortened : rawHistory;
  });
}

/** Returns a message with shortened results, or the same object if no result is too long. */
function shorten(message: ToolMessage, maxChars: number): ChatMessage {
  const content = message.content.map((part): ToolResultPart => {
    if (part.isError) return part;
    const output = cutOutput(part.output, maxChars);
    return output === part.output ? part : { ...part, output };
  });
  return content.some((part, index) => part !== message.content[index]) ? { ...message, content } : message;
}
