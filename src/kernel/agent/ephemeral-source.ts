import type { ChatMessage } from "../messages/chat-message.ts";

/**
 * Live state for one model call, such as the tabs of an open browser. It is sent after the transcript and never stored
 * (J4).
 */
export interface EphemeralSource {
  /** Name of the source, as it appears in error events. */
  readonly name: string;
  /**
   * Returns the messages to send with the next model call, or an empty array. An error is recorded, and the call
   * continues without the messages (S4).
   */
  messages(): Promise<readonly ChatMessage[]>;
}
