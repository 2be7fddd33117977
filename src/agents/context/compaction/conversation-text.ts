import type { ChatMessage, ContentPart } from "../../../kernel/index.ts";
import { cutOutput, cutText } from "./cut-text.ts";

/** Maximum number of characters of one call or result, which is enough for a summary. */
const maxChars = 2_000;

/** Renders a conversation as plain text, for a model that summarises it. */
export function conversationText(messages: readonly ChatMessage[]): string {
  return messages.map(messageLines).filter(Boolean).join("\n\n");
}

function messageLines(message: ChatMessage): string {
  if (message.role === "system") return `[system] ${message.content}`;
  return message.content
    .map((part) => partLine(message.role, part))
    .filter(Boolean)
    .join("\n");
}

function partLine(role: string, part: ContentPart): string {
  switch (part.type) {
    case "text":
      return `[${role}] ${part.text}`;
    case "reasoning":
    case "opaque":
      return "";
    case "image":
    case "file":
      return `[${role}] (${part.type}, ${part.mediaType})`;
    case "tool_call":
      return `[call] ${part.toolName} ${cutText(JSON.stringify(part.input), maxChars)}`;
    case "tool_result": {
      const output = cutOutput(part.output, maxChars);
      const text = output.type === "text" ? output.text : JSON.stringify(output);
      return `[${part.isError ? "error" : "result"} of ${part.toolName}] ${text}`;
    }
  }
}
