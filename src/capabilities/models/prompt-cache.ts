import type {
  ChatMessage,
  JsonObject,
  ModelCallOptions,
  ProviderMetadata,
  ProviderOptions,
} from "../../kernel/index.ts";

const mark: JsonObject = { cacheControl: { type: "ephemeral" } };

/**
 * Marks the positions up to which a provider may cache the prompt: after the system message, which includes the
 * tools, and after the last three user or tool messages, so that the next call finds the beginning of the previous
 * one. The first call of a child (`RunContext.child`) therefore marks its parent's last marked message. After it
 * come the results of the parent's open calls and the prompt of the child. The `ephemeral` last messages get no
 * mark, because they are not repeated. Anthropic allows four marks; other providers ignore them.
 */
export function markPrefix(messages: readonly ChatMessage[], ephemeral = 0): readonly ChatMessage[] {
  const places = new Set([messages.findLastIndex(({ role }) => role === "system")]);
  let last = messages.length - ephemeral - 1;
  for (let marks = 0; last >= 0 && marks < 3; last--) {
    const role = messages[last]?.role;
    if (role !== "user" && role !== "tool") continue;
    places.add(last);
    marks++;
  }
  return messages.map((message, place) => (places.has(place) ? marked(message) : message));
}

/** Marks the prompt for Anthropic, unless the caller has marked a message or refuses it. */
export function markByDefault(
  provider: string,
  messages: readonly ChatMessage[],
  { promptCache = true, ephemeralMessages }: ModelCallOptions,
): readonly ChatMessage[] {
  if (provider !== "anthropic" || !promptCache || messages.some(isMarked)) return messages;
  return markPrefix(messages, ephemeralMessages);
}

/** Whether a message or one of its parts has a mark. Anthropic refuses more than four marks in a request. */
function isMarked({ providerMetadata, content }: ChatMessage): boolean {
  if (hasMark(providerMetadata)) return true;
  return typeof content !== "string" && content.some((part) => hasMark(part.providerMetadata));
}

function hasMark(metadata: ProviderMetadata | undefined): boolean {
  const { cacheControl, cache_control: wireName } = metadata?.["anthropic"] ?? {};
  return cacheControl !== undefined || wireName !== undefined;
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
 * Adds the key of the prompt cache to the options of OpenAI, whose servers use it to find the cached prompt of a
 * session. A key of the caller takes precedence. Other providers get no key: they have no such option, and a server
 * that is only compatible may refuse it.
 */
export function withCacheKey(
  options: ProviderOptions | undefined,
  promptCacheKey: string | undefined,
): ProviderOptions | undefined {
  if (promptCacheKey === undefined) return options;
  return { ...options, openai: { promptCacheKey, ...options?.["openai"] } };
}

/**
 * Whether a model accepts a key of the prompt cache, as models of `@ai-sdk/openai` do. A model of
 * `@ai-sdk/openai-compatible` may have the same provider name, but would send the option to its server unchanged.
 * It is recognised by its flag for structured outputs.
 */
export function takesCacheKey(
  provider: string,
  model: { readonly supportsStructuredOutputs?: boolean },
): boolean {
  return provider === "openai" && model.supportsStructuredOutputs === undefined;
}
