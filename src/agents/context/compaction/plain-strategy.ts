import type { ChatMessage, CompactionStrategy } from "../../../kernel/index.ts";

/** A strategy without model calls. Whether it is due is determined by applying it. */
export function plainStrategy(
  cut: (history: readonly ChatMessage[]) => readonly ChatMessage[],
): CompactionStrategy {
  return {
    compact: async (rawHistory) => cut(rawHistory),
    isDue: (rawHistory) => cut(rawHistory) !== rawHistory,
  };
}
