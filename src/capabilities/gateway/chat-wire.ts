import { isObject, type Json, nameIn, textIn } from "./json-values.ts";
import { checkTools, openAi, openAiUsage, serviceTier } from "./openai-common.ts";
import {
  cacheControl,
  checkMedia,
  Findings,
  flag,
  objectOf,
  oneOf,
  refused,
  type MemberTable,
} from "./request-shape.ts";
import type { Wire, WireRequest } from "./wire.ts";

/**
 * The members of a request. All others are refused, because providers that pass requests on read further members,
 * which name other models, addresses or keys.
 */
const members: MemberTable = {
  model: true,
  messages: (value, found) =>
    found.list("messages", value, (message) => found.members(message, messageMembers)),
  max_completion_tokens: true,
  max_tokens: true,
  stream: flag("stream"),
  stream_options: objectOf("stream_options", {
    include_usage: flag("stream_options.include_usage"),
    include_obfuscation: true,
    continuous_usage_stats: true,
  }),
  tools: checkTools,
  tool_choice: true,
  parallel_tool_calls: true,
  functions: true,
  function_call: true,
  n: oneOf([1], "n"),
  modalities: (value, found) => {
    const isText = Array.isArray(value) && value.every((each) => each === "text");
    if (!isText) found.unbounded.add("modalities");
  },
  response_format: true,
  reasoning_effort: true,
  verbosity: true,
  temperature: true,
  top_p: true,
  top_k: true,
  stop: true,
  seed: true,
  presence_penalty: true,
  frequency_penalty: true,
  logit_bias: true,
  logprobs: true,
  top_logprobs: true,
  metadata: true,
  user: true,
  safety_identifier: true,
  prompt_cache_key: true,
  prompt_cache_retention: true,
  service_tier: serviceTier,
  store: oneOf([false], "store"),
};

const messageMembers: MemberTable = {
  role: true,
  content: (value, found) => found.content("content", value, (part) => checkPart(part, found)),
  name: true,
  tool_calls: true,
  tool_call_id: true,
  function_call: true,
  refusal: true,
  annotations: true,
  reasoning: true,
  reasoning_content: true,
  reasoning_details: true,
  cache_control: cacheControl,
  audio: refused("audio"),
};

function checkPart(part: Json, found: Findings): void {
  const { type, image_url, file, cache_control } = part;
  cacheControl(cache_control, found);
  if (type === "image_url") checkMedia(found, "image", isObject(image_url) ? image_url["url"] : image_url);
  else if (type === "file") {
    const isNamed = isObject(file) && file["file_id"] !== undefined;
    found.document(isNamed ? "file by id" : "file");
  } else if (type === "input_audio") found.document("audio");
  else if (type !== "text" && type !== "refusal") found.unbounded.add(`content ${nameIn(type)}`);
}

/** The Chat Completions API of OpenAI and of the many providers that offer it. */
export const chatWire: Wire = {
  ...openAi,
  route: (path) => (path === "/v1/chat/completions" ? { wire: chatWire, kind: "call" } : undefined),
  read(body, _route, { allow, provider, outputLimit: known }): WireRequest {
    const { model, stream, stream_options, store } = body;
    const found = new Findings();
    found.members(body, members);
    const older = found.limit(body, "max_tokens");
    const newer = found.limit(body, "max_completion_tokens");
    if (older !== undefined && newer !== undefined)
      found.reject("max_tokens and max_completion_tokens are both given; use one");
    const asksUsage = isObject(stream_options) && stream_options["include_usage"] === true;
    const hidesUsage = stream === true && !asksUsage;
    const isStored = (store === undefined || store === null) && provider === "openai";
    return {
      model: textIn(model),
      outputLimit: newer ?? older,
      limitPath: [older === undefined ? known : "max_tokens"],
      // A provider ignores a member that it does not know.
      ...(newer !== undefined && known === "max_tokens" && { unknownLimit: "max_completion_tokens" }),
      hidesUsage,
      added: [
        ...(hidesUsage ? [{ path: ["stream_options", "include_usage"], value: "true" }] : []),
        // OpenAI stores the completions of some accounts unless the request says otherwise.
        ...(isStored && !allow.includes("store") ? [{ path: ["store"], value: "false" }] : []),
      ],
      found,
    };
  },
  usageOf: ({ usage }) => (isObject(usage) ? openAiUsage(usage, "prompt", "completion") : undefined),
  isUsageOnly: ({ choices, usage }) => Array.isArray(choices) && choices.length === 0 && isObject(usage),
};
