import { messageText, type ChatMessage, type UserMessage } from "./chat-message.ts";

const opening = "What was said before, in summary:\n\n<summary>\n";
const closing = "\n</summary>";

/** The message that stands in for what was left out. The next compaction knows it by this form and updates it. */
export function summaryMessage(summary: string): UserMessage {
  return {
    role: "user",
    content: [{ type: "text", text: `${opening}${summary}${closing}` }],
    providerMetadata: { reeve: { summary: true } },
  };
}

export function isSummary({ role, providerMetadata }: ChatMessage): boolean {
  return role === "user" && providerMetadata?.["reeve"]?.["summary"] === true;
}

/** The summary a message carries; `null` for any other message, whatever it says. */
export function summaryOf(message: ChatMessage): string | null {
  return isSummary(message) ? messageText(message).slice(opening.length, -closing.length) : null;
}
