import {
  countIn,
  everyObject,
  isObject,
  isOther,
  isRemote,
  listIn,
  objectsIn,
  type Json,
  type Route,
  type StreamedUsage,
  type Wire,
  type WireRequest,
} from "./wire.ts";

/** Tools that the program itself executes. Every other tool runs at the provider and costs extra. */
const clientTools: ReadonlySet<unknown> = new Set([
  "function",
  "custom",
  "local_shell",
  "shell",
  "apply_patch",
  "computer_use_preview",
]);

const freeTiers: ReadonlySet<unknown> = new Set([undefined, null, "auto", "default", "flex"]);

/** Members of a Responses request that name something stored at the provider, or work without an end in the answer. */
const storedMembers = ["previous_response_id", "conversation", "prompt"];

/**
 * Members of a Chat Completions request whose cost the gateway cannot bound. Providers that pass requests on read further
 * ones, which name other models, addresses or keys.
 */
const pricedMembers = [
  "web_search_options",
  "prediction",
  "audio",
  "best_of",
  "models",
  "fallbacks",
  "route",
  "provider",
  "plugins",
  "api_base",
  "base_url",
  "api_key",
];

const common = {
  name: "openai",
  authorize: (apiKey: string) => ({ authorization: `Bearer ${apiKey}` }),
  error: (status: number, message: string) => ({
    error: {
      message,
      type: status < 500 ? "invalid_request_error" : "server_error",
      code: errorCode(status),
      param: null,
    },
  }),
} as const;

/** The Responses API of OpenAI. */
const responsesWire: Wire = {
  ...common,
  route: (path) => (path === "/v1/responses" ? { wire: responsesWire, kind: "call" } : undefined),
  read(body) {
    const { model, max_output_tokens, stream } = body;
    return {
      model: typeof model === "string" ? model : "",
      outputLimit: countIn(max_output_tokens),
      limitPath: ["max_output_tokens"],
      isStream: stream === true,
      added: [],
      unbounded: [...unboundedInResponses(body)],
    };
  },
  usageOf(answer) {
    const response = isObject(answer["response"]) ? answer["response"] : answer;
    return isObject(response["usage"]) ? usageIn(response["usage"], "input", "output") : undefined;
  },
};

/** The Chat Completions API of OpenAI and of the many providers that offer it. */
export const chatWire: Wire = {
  ...common,
  route: (path) => (path === "/v1/chat/completions" ? { wire: chatWire, kind: "call" } : undefined),
  read(body): WireRequest {
    const { model, max_tokens, max_completion_tokens, stream, stream_options } = body;
    const older = countIn(max_tokens);
    const newer = countIn(max_completion_tokens);
    const isStream = stream === true;
    const asksUsage = isObject(stream_options) && stream_options["include_usage"] === true;
    return {
      model: typeof model === "string" ? model : "",
      outputLimit: newer ?? older,
      limitPath: [newer === undefined && older !== undefined ? "max_tokens" : "max_completion_tokens"],
      isStream,
      added: isStream && !asksUsage ? [{ path: ["stream_options", "include_usage"], value: "true" }] : [],
      unbounded: [...unboundedInChat(body)],
      ...(newer !== undefined &&
        older !== undefined && { problem: "max_tokens and max_completion_tokens are both given; use one" }),
    };
  },
  usageOf: ({ usage }) => (isObject(usage) ? usageIn(usage, "prompt", "completion") : undefined),
  isUsageOnly: ({ choices, usage }) => Array.isArray(choices) && choices.length === 0 && isObject(usage),
};

/** The routes of both wires of OpenAI. */
export function openAiRoute(path: string): Route | undefined {
  return responsesWire.route(path) ?? chatWire.route(path);
}

function* unboundedTools({ tools }: Json): Iterable<string> {
  for (const tool of objectsIn(tools)) {
    const { type } = tool;
    // A namespace is a list of tools under one name.
    if (type === "namespace") yield* unboundedTools(tool);
    else if (!clientTools.has(type)) yield String(type);
  }
}

function* unboundedInResponses(body: Json): Iterable<string> {
  yield* unboundedTools(body);
  for (const name of storedMembers) if (body[name] !== undefined && body[name] !== null) yield name;
  if (body["store"] === true) yield "store";
  if (body["background"] === true) yield "background";
  if (!freeTiers.has(body["service_tier"])) yield String(body["service_tier"]);
  for (const { type, image_url, file_url, file_id } of everyObject(body["input"])) {
    if (type === "input_audio") yield "audio";
    if (type === "item_reference") yield "item_reference";
    if (type === "input_image" && image_url !== undefined && isRemote(image_url)) yield "image by url";
    if (file_url !== undefined) yield "file by url";
    if (file_id !== undefined) yield "file by id";
  }
}

function* unboundedInChat(body: Json): Iterable<string> {
  yield* unboundedTools(body);
  for (const name of pricedMembers) if (body[name] !== undefined && body[name] !== null) yield name;
  if (isOther(body["n"], 1)) yield "n";
  if (listIn(body["modalities"]).some((each) => each !== "text")) yield "modalities";
  if (body["store"] === true) yield "store";
  if (!freeTiers.has(body["service_tier"])) yield String(body["service_tier"]);
  for (const { type, image_url, file } of everyObject(body["messages"])) {
    if (type === "input_audio") yield "audio";
    if (isObject(image_url) && isRemote(image_url["url"])) yield "image by url";
    if (isObject(file) && file["file_id"] !== undefined) yield "file by id";
  }
}

function usageIn(usage: Json, input: string, output: string): StreamedUsage {
  const detailOf = (name: string, count: string): number => {
    const details = usage[`${name}_tokens_details`];
    return (isObject(details) ? countIn(details[count]) : undefined) ?? 0;
  };
  const inputTokens = countIn(usage[`${input}_tokens`]);
  const outputTokens = countIn(usage[`${output}_tokens`]);
  return {
    ...(inputTokens !== undefined && { inputTokens, cacheReadTokens: detailOf(input, "cached_tokens") }),
    ...(outputTokens !== undefined && {
      outputTokens,
      reasoningTokens: detailOf(output, "reasoning_tokens"),
    }),
  };
}

function errorCode(status: number): string {
  if (status === 401) return "invalid_api_key";
  if (status === 402) return "insufficient_quota";
  return status === 404 ? "not_found" : "refused";
}
