import type { ChatMessage, CompactionStrategy } from "../../../kernel/index.ts";

/** Creates a strategy without model calls. To find out whether it is due, it is applied. */
export function plainStrategy(
  cut: (history: readonly ChatMessage[]) => readonly ChatMessage[],
): CompactionStrategy {
  return {
    compact: async (rawHistory) => cut(rawHistory),
    isDue: (rawHistory) => cut(rawHistory) !== rawHistory,
  };
}
