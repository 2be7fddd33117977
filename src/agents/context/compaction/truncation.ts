import {
  Fault,
  type ChatMessage,
  type CompactionStrategy,
  charsOfAll,
  outputChars,
  is,
  optionTable,
  type OptionKinds,
} from "../../../kernel/index.ts";
import { cutOutput, shortestCut } from "./cut-output.ts";
import { groupHistory } from "./message-group.ts";
import { plainStrategy } from "./plain-strategy.ts";
import { recentGroups } from "./recent-groups.ts";

export interface TruncationOptions {
  readonly maxMessages?: number;
  readonly maxChars?: number;
}

const knownOptions = optionTable({
  maxMessages: is.integer({ from: 1 }),
  maxChars: is.integer({ from: shortestCut }),
} satisfies OptionKinds<TruncationOptions>);

/**
 * Creates a strategy that limits the number of messages, of characters, or both. Use it as the last one. The oldest
 * messages are dropped first. If the newest turn alone exceeds `maxChars`, its tool results are cut, including
 * errors and unread ones. User and system messages are never cut, so that they may exceed the limit.
 */
export function truncation(options: TruncationOptions): CompactionStrategy {
  const { maxMessages, maxChars } = knownOptions.read("truncation()", options);
  if (maxMessages === undefined && maxChars === undefined) {
    throw new Fault("invalid_argument", "truncation needs a limit; set maxMessages, maxChars or both");
  }
  return plainStrategy((rawHistory) => {
    const byCount = dropOldest(rawHistory, maxMessages, ({ length }) => length);
    const bySize = dropOldest(byCount, maxChars, charsOfAll);
    return maxChars === undefined ? bySize : cutResults(bySize, maxChars);
  });
}

function dropOldest(
  history: readonly ChatMessage[],
  limit: number | undefined,
  cost: (messages: readonly ChatMessage[]) => number,
): readonly ChatMessage[] {
  if (limit === undefined || cost(history) <= limit) return history;
  const { head, groups } = groupHistory(history);
  const { kept, left } = recentGroups(groups, limit - cost(head), cost);
  return left.length === 0 ? history : [...head, ...kept.flat()];
}

/** Cuts results, beginning with the oldest, until the history fits. Each is cut by as much as is still necessary. */
function cutResults(history: readonly ChatMessage[], maxChars: number): readonly ChatMessage[] {
  let excess = charsOfAll(history) - maxChars;
  if (excess <= 0 || !history.some(({ role }) => role === "tool")) return history;
  let isCut = false;
  const cut = history.map((message): ChatMessage => {
    if (message.role !== "tool" || excess <= 0) return message;
    const content = message.content.map((part) => {
      const size = outputChars(part.output);
      const output = excess <= 0 ? part.output : cutOutput(part.output, Math.max(shortestCut, size - excess));
      if (output === part.output) return part;
      isCut = true;
      excess -= size - outputChars(output);
      return { ...part, output };
    });
    return { ...message, content };
  });
  return isCut ? cut : history;
}
