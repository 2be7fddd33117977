import type { CompactionStrategy } from "../../kernel/index.ts";
import { requireLimit } from "./limit.ts";
import { groupHistory } from "./message-group.ts";
import { estimateTokens, type TokenCounter } from "./message-size.ts";
import { recentGroups } from "./recent-groups.ts";
import { trySummaries, type SummaryAttempt } from "./summary-attempt.ts";
import { isSummary, summaryMessage, summaryOf } from "./summary-message.ts";

export interface SummarizationOptions extends SummaryAttempt {
  /** Up to here nothing is summarised. What the composition it is part of aims at; by itself, twice `keepRecentTokens`. */
  readonly maxTokens?: number;
  /** What stays as it is, from the newest back: 16,384 unless told, and never more than half of `maxTokens`. */
  readonly keepRecentTokens?: number;
  readonly countTokens?: TokenCounter;
  readonly instructions?: string;
}

/** Puts one summary in place of the older messages. A summary that is there already is updated, so there is never a second. */
export function summarization(options: SummarizationOptions): CompactionStrategy {
  const { keepRecentTokens = 16_384, countTokens = estimateTokens, instructions } = options;
  requireLimit("keepRecentTokens", keepRecentTokens, 1);
  if (options.maxTokens !== undefined) requireLimit("maxTokens", options.maxTokens, 1);
  return {
    async compact(rawHistory, goal) {
      const maxTokens = options.maxTokens ?? goal?.maxTokens ?? 2 * keepRecentTokens;
      if (countTokens(rawHistory) <= maxTokens) return rawHistory;
      const { head, groups } = groupHistory(rawHistory);
      // Room to grow: a window that is full again at the next turn would be summed up again at every turn.
      const recent = Math.min(keepRecentTokens, Math.floor(maxTokens / 2));
      const { kept, left } = recentGroups(groups, recent, countTokens);
      if (left.length === 0) return rawHistory;
      const last = head.at(-1);
      const previous = last === undefined ? null : summaryOf(last);
      const wishes = instructions === undefined ? {} : { instructions };
      const request = { messages: left.flat(), previous, part: "history", ...wishes } as const;
      const [summary] = (await trySummaries(options, [request])) ?? [];
      if (summary === undefined) return rawHistory;
      const system = head.filter((message) => !isSummary(message));
      return [...system, summaryMessage(summary), ...kept.flat()];
    },
  };
}
