import type { ChatMessage } from "./chat-message.ts";

/**
 * Turns a full history into a window that fits.
 *
 * - S3 It never changes what is stored and never separates a tool call from its result.
 * - It fails by changing nothing: an empty or failed summary returns the history as it was.
 */
export interface CompactionStrategy {
  compact(rawHistory: readonly ChatMessage[]): Promise<readonly ChatMessage[]>;
}
