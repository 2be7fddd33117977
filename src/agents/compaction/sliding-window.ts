import type { CompactionStrategy } from "../../kernel/index.ts";
import { requireLimit } from "./limit.ts";
import { groupHistory } from "./message-group.ts";
import { plainStrategy } from "./plain-strategy.ts";
import { recentGroups } from "./recent-groups.ts";

export interface SlidingWindowOptions {
  /** In all, the leading system messages included. 100 unless told. */
  readonly maxMessages?: number;
}

/** Keeps the newest messages. One turn may come to more than the limit; it is kept whole where it cannot be cut. */
export function slidingWindow({ maxMessages = 100 }: SlidingWindowOptions = {}): CompactionStrategy {
  requireLimit("maxMessages", maxMessages, 1);
  return plainStrategy((rawHistory) => {
    if (rawHistory.length <= maxMessages) return rawHistory;
    const { head, groups } = groupHistory(rawHistory);
    const { kept, left } = recentGroups(groups, maxMessages - head.length, ({ length }) => length);
    return left.length === 0 ? rawHistory : [...head, ...kept.flat()];
  });
}
