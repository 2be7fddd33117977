import { isObject, type Json, nameIn, textIn } from "./json-values.ts";
import { checkTools, openAi, openAiUsage, serviceTier } from "./openai-common.ts";
import { checkMedia, Findings, flag, oneOf, refused, stored, type MemberTable } from "./request-shape.ts";
import type { Wire } from "./wire.ts";

/** Items of an input whose bytes are an upper bound of their tokens. */
const plainItems: ReadonlySet<unknown> = new Set([
  "function_call",
  "custom_tool_call",
  "reasoning",
  "local_shell_call",
  "local_shell_call_output",
  "shell_call",
  "shell_call_output",
  "apply_patch_call",
  "apply_patch_call_output",
  "computer_call",
  "tool_search_call",
  "tool_search_output",
  "web_search_call",
  "file_search_call",
  "code_interpreter_call",
  "mcp_list_tools",
  "mcp_call",
  "mcp_approval_request",
  "mcp_approval_response",
  "compaction",
  "compaction_summary",
]);

const plainParts: ReadonlySet<unknown> = new Set(["input_text", "output_text", "refusal", "text"]);

const members: MemberTable = {
  model: true,
  input: (value, found) => found.content("input", value, (item) => checkItem(item, found)),
  instructions: true,
  max_output_tokens: true,
  max_tool_calls: true,
  stream: flag("stream"),
  stream_options: true,
  tools: checkTools,
  tool_choice: true,
  parallel_tool_calls: true,
  reasoning: true,
  text: true,
  temperature: true,
  top_p: true,
  top_logprobs: true,
  truncation: true,
  include: true,
  metadata: true,
  client_metadata: true,
  user: true,
  safety_identifier: true,
  prompt_cache_key: true,
  prompt_cache_retention: true,
  service_tier: serviceTier,
  store: oneOf([false], "store"),
  background: oneOf([false], "background"),
  // What they name is stored at the provider.
  previous_response_id: stored("previous_response_id"),
  conversation: stored("conversation"),
  prompt: stored("prompt"),
  context_management: refused("context_management"),
};

function checkItem(item: Json, found: Findings): void {
  const { type, role, content, output } = item;
  const isTyped = type !== undefined && type !== null;
  if (type === "message" || (!isTyped && role !== undefined))
    found.content("the content of a message", content, (part) => checkPart(part, found));
  else if (type === "function_call_output" || type === "custom_tool_call_output")
    found.content(`the output of a ${type}`, output, (part) => checkPart(part, found));
  else if (type === "computer_call_output") {
    if (isObject(output)) checkImage(output, found);
    else found.reject("the output of a computer_call_output is not an object");
  } else if (type === "image_generation_call") found.images++;
  // An item with an id and no type names one that is stored.
  else if (!plainItems.has(type)) found.document(isTyped ? nameIn(type) : "item_reference");
}

function checkPart(part: Json, found: Findings): void {
  const { type, file_url, file_id } = part;
  if (type === "input_image") checkImage(part, found);
  else if (type === "input_file") {
    const place = file_url !== undefined ? " by url" : file_id !== undefined ? " by id" : "";
    found.document(`file${place}`);
  } else if (type === "input_audio") found.document("audio");
  else if (!plainParts.has(type)) found.unbounded.add(`content ${nameIn(type)}`);
}

function checkImage({ image_url, file_id }: Json, found: Findings): void {
  if (file_id !== undefined && file_id !== null) found.document("file by id");
  else checkMedia(found, "image", image_url);
}

/** The Responses API of OpenAI. */
export const responsesWire: Wire = {
  ...openAi,
  route: (path) => (path === "/v1/responses" ? { wire: responsesWire, kind: "call" } : undefined),
  read(body, _route, { allow }) {
    const found = new Findings();
    found.members(body, members);
    const { model, store } = body;
    const isStored = store === undefined || store === null;
    return {
      model: textIn(model),
      outputLimit: found.limit(body, "max_output_tokens"),
      limitPath: ["max_output_tokens"],
      // The provider stores a response unless the request says otherwise.
      added: isStored && !allow.includes("store") ? [{ path: ["store"], value: "false" }] : [],
      found,
    };
  },
  usageOf(answer) {
    const response = isObject(answer["response"]) ? answer["response"] : answer;
    return isObject(response["usage"]) ? openAiUsage(response["usage"], "input", "output") : undefined;
  },
};
