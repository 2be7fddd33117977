import type { ChatMessage } from "../messages/chat-message.ts";

/** Live state for one model call, such as an open browser's tabs: sent after the transcript, never kept (J4). */
export interface EphemeralSource {
  readonly name: string;
  /** Nothing when there is nothing to show. What it throws is recorded, and the call goes on without it (S4). */
  messages(): Promise<readonly ChatMessage[]>;
}
