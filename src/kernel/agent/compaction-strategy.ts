import type { ChatMessage } from "../messages/chat-message.ts";

/** The size that a compacted history must not exceed. */
export interface CompactionGoal {
  /** Maximum number of tokens of the compacted history. */
  readonly maxTokens: number;
}

/**
 * Shortens a history so that it fits a model's context window.
 *
 * - S3: it never changes stored messages and never separates a tool call from its result.
 * - It keeps the leading system messages and the order of messages, and does not change the array it receives.
 * - If it fails, for example because a summary is empty, it returns the history unchanged.
 * - If there is nothing to shorten, it returns the same array that it received.
 */
export interface CompactionStrategy {
  /**
   * Returns the shortened history. A strategy with limits of its own may ignore `goal` and leave it to later
   * strategies.
   */
  compact(rawHistory: readonly ChatMessage[], goal?: CompactionGoal): Promise<readonly ChatMessage[]>;
  /**
   * Whether `compact` may return a different history. The answer must depend on the arguments only, so that a replay
   * gets the same answer. J4: each call of `compact` is a journaled step; without this method, every model call is
   * preceded by such a step.
   */
  isDue?(rawHistory: readonly ChatMessage[], goal?: CompactionGoal): boolean;
}
