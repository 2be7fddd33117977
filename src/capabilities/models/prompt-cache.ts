import type { ChatMessage, JsonObject, ProviderOptions } from "../../kernel/index.ts";

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

/**
 * Adds the key of the prompt cache to the options of OpenAI, whose servers use it to find the cached prompt of a session.
 * A key of the caller wins. Other providers receive none: they have no such option, and a server that is only compatible
 * may refuse it.
 */
export function withCacheKey(
  options: ProviderOptions | undefined,
  promptCacheKey: string | undefined,
): ProviderOptions | undefined {
  if (promptCacheKey === undefined) return options;
  return { ...options, openai: { promptCacheKey, ...options?.["openai"] } };
}

/**
 * Whether a model takes a key of the prompt cache, as those of `@ai-sdk/openai` do. A model of
 * `@ai-sdk/openai-compatible` may have the same provider name; it differs by its flag for structured outputs, and would
 * send the option to its server unchanged.
 */
export function takesCacheKey(
  provider: string,
  model: { readonly supportsStructuredOutputs?: boolean },
): boolean {
  return provider === "openai" && model.supportsStructuredOutputs === undefined;
}
