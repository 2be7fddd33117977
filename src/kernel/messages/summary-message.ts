import { messageText, type ChatMessage, type UserMessage } from "./chat-message.ts";

const opening = "What was said before, in summary:\n\n<summary>\n";
const closing = "\n</summary>";

/**
 * Creates the message that replaces compacted messages. The next compaction recognises the message and updates its
 * summary.
 */
export function summaryMessage(summary: string): UserMessage {
  return {
    role: "user",
    content: [{ type: "text", text: `${opening}${summary}${closing}` }],
    providerMetadata: { reeve: { summary: true } },
  };
}

/** Whether `summaryMessage` created the message. */
export function isSummary({ role, providerMetadata }: ChatMessage): boolean {
  return role === "user" && providerMetadata?.["reeve"]?.["summary"] === true;
}

/** Returns the summary in a message that `summaryMessage` created. `null` for any other message, whatever its text. */
export function summaryOf(message: ChatMessage): string | null {
  return isSummary(message) ? messageText(message).slice(opening.length, -closing.length) : null;
}
