import type { ChatMessage, JsonObject } from "../../kernel/index.ts";

const mark: JsonObject = { cacheControl: { type: "ephemeral" } };

/**
 * Marks where a prompt may be kept from call to call: after its system part, which has the tools before it, and after the last two
 * messages that are not the model's own, so that the next call finds the one before. Anthropic allows four marks; others do not
 * look at them.
 */
export function markPrefix(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  const places = new Set([
    messages.findLastIndex(({ role }) => role === "system"),
    ...messages.flatMap(({ role }, place) => (role === "user" || role === "tool" ? [place] : [])).slice(-2),
  ]);
  return messages.map((message, place) => (places.has(place) ? marked(message) : message));
}

/** A mark that is there already stays as it is. */
function marked(message: ChatMessage): ChatMessage {
  const { providerMetadata = {} } = message;
  return {
    ...message,
    providerMetadata: { ...providerMetadata, anthropic: { ...mark, ...providerMetadata["anthropic"] } },
  };
}
