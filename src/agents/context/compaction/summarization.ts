import {
  isSummary,
  summaryMessage,
  summaryOf,
  type ChatMessage,
  type CompactionGoal,
  type CompactionStrategy,
  estimateTokens,
  type TokenCounter,
  is,
  optionTable,
  type OptionKinds,
} from "../../../kernel/index.ts";
import { groupHistory, type GroupedHistory } from "./message-group.ts";
import { recentGroups, type RecentGroups } from "./recent-groups.ts";
import { trySummaries, type SummaryAttempt } from "./summary-attempt.ts";

export interface SummarizationOptions extends SummaryAttempt {
  /**
   * Maximum size of histories that are not summarised, in tokens. Default: the target of the enclosing composition,
   * otherwise twice `keepRecentTokens`.
   */
  readonly maxTokens?: number;
  /**
   * Number of tokens of the newest messages that are kept unchanged. Never more than half of `maxTokens`. Default:
   * 16_384.
   */
  readonly keepRecentTokens?: number;
  readonly countTokens?: TokenCounter;
  readonly instructions?: string;
}

const knownOptions = optionTable({
  maxTokens: is.integer({ from: 1 }),
  keepRecentTokens: is.integer({ from: 1, default: 16_384 }),
  countTokens: is.any,
  instructions: is.text(),
  summarize: is.any,
  onFailure: is.callback(),
} satisfies OptionKinds<SummarizationOptions>);

/**
 * Creates a strategy that replaces older messages by one summary. An existing summary is updated, so that there is
 * never a second one.
 */
export function summarization(options: SummarizationOptions): CompactionStrategy {
  const {
    keepRecentTokens,
    countTokens = estimateTokens,
    instructions,
  } = knownOptions.read("summarization()", options);
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
