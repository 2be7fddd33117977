import {
  checkOptions,
  isSummary,
  optionNames,
  summaryMessage,
  summaryOf,
  type ChatMessage,
  type CompactionGoal,
  type CompactionStrategy,
  estimateTokens,
  type TokenCounter,
} from "../../../kernel/index.ts";
import { requireLimit } from "../../base/limit.ts";
import { groupHistory, type GroupedHistory } from "./message-group.ts";
import { recentGroups, type RecentGroups } from "./recent-groups.ts";
import { trySummaries, type SummaryAttempt } from "./summary-attempt.ts";

export interface SummarizationOptions extends SummaryAttempt {
  /**
   * Histories up to this size are not summarised. Default: the target of the enclosing composition, otherwise twice
   * `keepRecentTokens`.
   */
  readonly maxTokens?: number;
  /** Tokens of the newest messages that are kept unchanged; never more than half of `maxTokens`. Default: 16_384. */
  readonly keepRecentTokens?: number;
  readonly countTokens?: TokenCounter;
  readonly instructions?: string;
}

const knownOptions = optionNames<SummarizationOptions>({
  maxTokens: true,
  keepRecentTokens: true,
  countTokens: true,
  instructions: true,
  summarize: true,
  onFailure: true,
});

/** Replaces older messages by one summary. An existing summary is updated, so there is never a second one. */
export function summarization(options: SummarizationOptions): CompactionStrategy {
  checkOptions("summarization()", options, knownOptions);
  const { keepRecentTokens = 16_384, countTokens = estimateTokens, instructions } = options;
  requireLimit("keepRecentTokens", keepRecentTokens, 1);
  if (options.maxTokens !== undefined) requireLimit("maxTokens", options.maxTokens, 1);
  const parted = (
    rawHistory: readonly ChatMessage[],
    goal: CompactionGoal | undefined,
  ): (RecentGroups & Pick<GroupedHistory, "head">) | undefined => {
    const maxTokens = options.maxTokens ?? goal?.maxTokens ?? 2 * keepRecentTokens;
    if (countTokens(rawHistory) <= maxTokens) return undefined;
    const { head, groups } = groupHistory(rawHistory);
    // Leave room to grow: a window that is full again at the next turn would be summarised at every turn.
    const recent = Math.min(keepRecentTokens, Math.floor(maxTokens / 2));
    const { kept, left } = recentGroups(groups, recent, countTokens);
    return left.length === 0 ? undefined : { head, kept, left };
  };
  return {
    isDue: (rawHistory, goal) => parted(rawHistory, goal) !== undefined,
    async compact(rawHistory, goal) {
      const parts = parted(rawHistory, goal);
      if (parts === undefined) return rawHistory;
      const { head, kept, left } = parts;
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
