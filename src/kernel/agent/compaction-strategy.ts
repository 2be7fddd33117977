import type { ChatMessage } from "../messages/chat-message.ts";

/** What a window is to come to, where whoever asks knows. */
export interface CompactionGoal {
  readonly maxTokens: number;
}

/**
 * Turns a full history into a window that fits.
 *
 * - S3 It never changes what is stored and never separates a tool call from its result.
 * - The leading system messages stay, the order stays, and the array it is given is not changed.
 * - It fails by changing nothing: an empty or failed summary returns the history as it was.
 * - Where there is nothing to do it returns the very array it was given.
 */
export interface CompactionStrategy {
  /** A strategy with limits of its own may leave the goal to those after it. */
  compact(rawHistory: readonly ChatMessage[], goal?: CompactionGoal): Promise<readonly ChatMessage[]>;
  /**
   * Whether `compact` may come to something else. Goes by the history alone, so that a replay comes to the same. J4: compacting is a step of
   * the run; without this method one is recorded before every model call.
   */
  isDue?(rawHistory: readonly ChatMessage[], goal?: CompactionGoal): boolean;
}
