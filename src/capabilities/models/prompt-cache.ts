import type { ChatMessage, JsonObject } from "../../kernel/index.ts";

const mark: JsonObject = { cacheControl: { type: "ephemeral" } };

/**
 * Marks where a provider may cache the prompt: after the system message, which includes the tools, and after the last
 * two user or tool messages, so that the next call finds the prefix of the previous one. Anthropic allows four marks;
 * other providers ignore them.
 */
export function markPrefix(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  const places = new Set([
    messages.findLastIndex(({ role }) => role === "system"),
    ...messages.flatMap(({ role }, place) => (role === "user" || role === "tool" ? [place] : [])).slice(-2),
  ]);
  return messages.map((message, place) => (places.has(place) ? marked(message) : message));
}

/** Marks a message. An existing mark is kept. */
function marked(message: ChatMessage): ChatMessage {
  const { providerMetadata = {} } = message;
  return {
    ...message,
    providerMetadata: { ...providerMetadata, anthropic: { ...mark, ...providerMetadata["anthropic"] } },
  };
}
