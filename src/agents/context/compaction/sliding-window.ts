import { type CompactionStrategy, is, optionTable, type OptionKinds } from "../../../kernel/index.ts";
import { groupHistory } from "./message-group.ts";
import { plainStrategy } from "./plain-strategy.ts";
import { recentGroups } from "./recent-groups.ts";

export interface SlidingWindowOptions {
  /** Maximum number of messages, including the leading system messages. Default: 100. */
  readonly maxMessages?: number;
}

const knownOptions = optionTable({
  maxMessages: is.integer({ from: 1, default: 100 }),
} satisfies OptionKinds<SlidingWindowOptions>);

/**
 * Creates a strategy that keeps the newest messages. A turn that cannot be cut is kept as a whole, even if it
 * exceeds the limit.
 */
export function slidingWindow(options: SlidingWindowOptions = {}): CompactionStrategy {
  const { maxMessages } = knownOptions.read("slidingWindow()", options);
  return plainStrategy((rawHistory) => {
    if (rawHistory.length <= maxMessages) return rawHistory;
    const { head, groups } = groupHistory(rawHistory);
    const { kept, left } = recentGroups(groups, maxMessages - head.length, ({ length }) => length);
    return left.length === 0 ? rawHistory : [...head, ...kept.flat()];
  });
}
