import { messageText, type ChatMessage } from "../messages/chat-message.ts";

const maxCharacters = 80;

/** Returns the title of a session that starts with this message: the start of a user's text, on one line. */
export function sessionTitle(message: ChatMessage): string | null {
  if (message.role !== "user") return null;
  // A longer text may consist of white space or of surrogate pairs, so more than the title is read.
  const line = messageText(message).slice(0, 1_000).toWellFormed().replaceAll(/\s+/gu, " ").trim();
  return line === "" ? null : Array.from(line).slice(0, maxCharacters).join("");
}
