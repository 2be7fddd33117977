import {
  countIn,
  everyObject,
  isObject,
  isOther,
  objectsIn,
  type Json,
  type StreamedUsage,
  type Wire,
} from "./wire.ts";

/** Tools that the program itself executes. Every other typed tool runs at the provider and costs extra. */
const clientTools = /^(custom|bash_|text_editor_|computer_|memory_)/;

/** Members whose cost the gateway cannot bound. */
const unboundedMembers = ["mcp_servers", "container", "inference_geo"];

/** The lowest `thinking.budget_tokens` that Anthropic accepts. */
const leastThinking = 1_024;

/** The Messages API of Anthropic. */
export const anthropicWire: Wire = {
  name: "anthropic",
  route(path) {
    if (path === "/v1/messages") return { wire: anthropicWire, kind: "call" };
    return path === "/v1/messages/count_tokens" ? { wire: anthropicWire, kind: "count" } : undefined;
  },
  read(body) {
    const { model, max_tokens, stream, thinking } = body;
    const outputLimit = countIn(max_tokens);
    const thinks = isObject(thinking) ? countIn(thinking["budget_tokens"]) : undefined;
    return {
      model: typeof model === "string" ? model : "",
      outputLimit,
      limitPath: ["max_tokens"],
      isStream: stream === true,
      added: [],
      unbounded: [...unboundedIn(body)],
      ...(thinks !== undefined && {
        thinking: { tokens: thinks, path: ["thinking", "budget_tokens"], least: leastThinking },
      }),
    };
  },
  countPath: "/v1/messages/count_tokens",
  countBody({ model, messages, system, tools, tool_choice, thinking }) {
    return { model, messages, system, tools, tool_choice, thinking };
  },
  countOf: ({ input_tokens }) => countIn(input_tokens),
  usageOf(answer) {
    const { message, usage } = answer;
    if (!isObject(message)) return isObject(usage) ? usageIn(usage) : undefined;
    if (!isObject(message["usage"])) return undefined;
    // The start of a stream states the input. Its output tokens are those so far, and not what is billed.
    const { outputTokens: _soFar, ...input } = usageIn(message["usage"]);
    return input;
  },
  authorize: (apiKey) => ({ "x-api-key": apiKey }),
  error: (status, message) => ({ type: "error", error: { type: errorType(status), message } }),
};

function* unboundedIn(body: Json): Iterable<string> {
  for (const { type } of objectsIn(body["tools"]))
    if (typeof type === "string" && !clientTools.test(type)) yield type;
  for (const name of unboundedMembers) if (body[name] !== undefined) yield name;
  if (body["service_tier"] === "priority") yield "priority";
  if (isOther(body["speed"], "standard")) yield "speed";
  // The price list has the price of a cache of five minutes.
  for (const { cache_control } of everyObject([
    body["messages"],
    body["system"],
    body["tools"],
    { cache_control: body["cache_control"] },
  ]))
    if (isObject(cache_control) && isOther(cache_control["ttl"], "5m")) {
      yield `cache for ${String(cache_control["ttl"])}`;
      break;
    }
  for (const { type, source } of everyObject(body["messages"]))
    if ((type === "image" || type === "document") && isObject(source))
      if (source["type"] === "url" || source["type"] === "file") yield `${type} by ${source["type"]}`;
}

function usageIn(usage: Json): StreamedUsage {
  const cacheReadTokens = countIn(usage["cache_read_input_tokens"]);
  const cacheWriteTokens = countIn(usage["cache_creation_input_tokens"]);
  const plain = countIn(usage["input_tokens"]);
  const outputTokens = countIn(usage["output_tokens"]);
  return {
    ...(plain !== undefined && {
      inputTokens: plain + (cacheReadTokens ?? 0) + (cacheWriteTokens ?? 0),
      cacheReadTokens: cacheReadTokens ?? 0,
      cacheWriteTokens: cacheWriteTokens ?? 0,
    }),
    ...(outputTokens !== undefined && { outputTokens }),
  };
}

function errorType(status: number): string {
  if (status === 401) return "authentication_error";
  if (status === 402) return "billing_error";
  if (status === 403) return "permission_error";
  if (status === 404) return "not_found_error";
  if (status === 413) return "request_too_large";
  if (status === 429) return "rate_limit_error";
  return status < 500 ? "invalid_request_error" : "api_error";
}
