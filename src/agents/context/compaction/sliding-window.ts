import { checkOptions, optionNames, type CompactionStrategy } from "../../../kernel/index.ts";
import { requireLimit } from "../../base/limit.ts";
import { groupHistory } from "./message-group.ts";
import { plainStrategy } from "./plain-strategy.ts";
import { recentGroups } from "./recent-groups.ts";

export interface SlidingWindowOptions {
  /** Maximum number of messages, including the leading system messages. Default: 100. */
  readonly maxMessages?: number;
}

const knownOptions = optionNames<SlidingWindowOptions>({ maxMessages: true });

/** Keeps the newest messages. A turn that cannot be cut is kept whole, even if it exceeds the limit. */
export function slidingWindow(options: SlidingWindowOptions = {}): CompactionStrategy {
  checkOptions("slidingWindow()", options, knownOptions);
  const { maxMessages = 100 } = options;
  requireLimit("maxMessages", maxMessages, 1);
  return plainStrategy((rawHistory) => {
    if (rawHistory.length <= maxMessages) return rawHistory;
    const { head, groups } = groupHistory(rawHistory);
    const { kept, left } = recentGroups(groups, maxMessages - head.length, ({ length }) => length);
    return left.length === 0 ? rawHistory : [...head, ...kept.flat()];
  });
}
