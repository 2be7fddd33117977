import type { ChatMessage, CompactionStrategy } from "../../kernel/index.ts";

/** A strategy that cuts by itself, asking nobody: whether there is something to do it says by doing it. */
export function plainStrategy(
  cut: (history: readonly ChatMessage[]) => readonly ChatMessage[],
): CompactionStrategy {
  return {
    compact: async (rawHistory) => cut(rawHistory),
    isDue: (rawHistory) => cut(rawHistory) !== rawHistory,
  };
}
