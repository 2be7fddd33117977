import { messageText, type ChatMessage } from "../messages/chat-message.ts";
import { runTitle } from "../run/run-title.ts";

/** Returns the title of a session that starts with this message. `null` if it is not a user's message with text. */
export function sessionTitle(message: ChatMessage): string | null {
  return message.role === "user" ? runTitle(messageText(message)) : null;
}
