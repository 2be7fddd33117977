import { isTextDocument } from "../../kernel/index.ts";
import { countIn, isObject, type Json, nameIn, textIn } from "./json-values.ts";
import { cacheControl, Findings, flag, objectOf, oneOf, refused, type MemberTable } from "./request-shape.ts";
import type { StreamedUsage, Wire } from "./wire.ts";

/** Matches tools that the program itself executes. All other typed tools run at the provider and cost extra. */
const clientTools = /^(custom$|bash_|text_editor_|computer_|memory_)/;

/** Edits of the context that delete parts of it. All other edits call a model. */
const deletingEdits: readonly unknown[] = ["clear_tool_uses_20250919", "clear_thinking_20251015"];

/** The lowest `thinking.budget_tokens` that Anthropic accepts. */
const leastThinking = 1_024;

/** Types of content blocks whose number of tokens is at most their number of bytes. */
const plainBlocks: ReadonlySet<unknown> = new Set([
  "text",
  "tool_use",
  "thinking",
  "redacted_thinking",
  "search_result",
  "server_tool_use",
  "web_search_tool_result",
  "code_execution_tool_result",
  "bash_code_execution_tool_result",
  "text_editor_code_execution_tool_result",
  "tool_search_tool_result",
  "tool_reference",
  "mcp_tool_use",
  "mcp_tool_result",
  "compaction",
]);

const members: MemberTable = {
  model: true,
  max_tokens: true,
  messages: (value, found) =>
    found.list("messages", value, (message) => found.members(message, messageMembers)),
  system: (value, found) => found.content("system", value, (block) => checkBlock(block, found)),
  tools: (value, found) => found.list("tools", value, (tool) => checkTool(tool, found)),
  tool_choice: true,
  stream: flag("stream"),
  temperature: true,
  top_p: true,
  top_k: true,
  stop_sequences: true,
  metadata: true,
  thinking: objectOf("thinking", { type: true, budget_tokens: true, display: true }),
  output_config: objectOf("output_config", { effort: true, format: true, task_budget: true }),
  output_format: true,
  cache_control: cacheControl,
  context_management: objectOf("context_management", {
    edits: (value, found) =>
      found.list("context_management.edits", value, ({ type }) => {
        if (!deletingEdits.includes(type)) found.unbounded.add(`context_management ${nameIn(type)}`);
      }),
  }),
  service_tier: oneOf(["auto", "standard_only"], nameIn),
  speed: oneOf(["standard"], "speed"),
  mcp_servers: refused("mcp_servers"),
  container: refused("container"),
  inference_geo: refused("inference_geo"),
};

const messageMembers: MemberTable = {
  role: true,
  content: (value, found) => found.content("content", value, (block) => checkBlock(block, found)),
};

function checkTool(tool: Json, found: Findings): void {
  const { type = "custom", cache_control } = tool;
  if (type !== null && !(typeof type === "string" && clientTools.test(type)))
    found.unbounded.add(nameIn(type));
  cacheControl(cache_control, found);
}

function checkBlock(block: Json, found: Findings): void {
  const { type, source, content, cache_control } = block;
  cacheControl(cache_control, found);
  if (type === "image") checkSource("image", source, found);
  else if (type === "document") checkSource("document", source, found);
  // The result of the provider's tool may contain a document.
  else if (type === "web_fetch_tool_result") found.hasDocuments = true;
  else if (type === "tool_result")
    found.content("the content of a tool_result", content, (inner) => checkBlock(inner, found));
  else if (!plainBlocks.has(type)) found.unbounded.add(`content ${nameIn(type)}`);
}

function checkSource(name: "image" | "document", source: unknown, found: Findings): void {
  const { type, media_type, content } = isObject(source) ? source : {};
  if (name === "image") {
    found.images++;
    if (type !== "base64") found.unbounded.add(`image by ${nameIn(type)}`);
  } else if (type === "base64") found.hasDocuments ||= !isTextDocument(textIn(media_type));
  else if (type === "content")
    found.content("the content of a document", content, (block) => checkBlock(block, found));
  else if (type !== "text") found.document(`document by ${nameIn(type)}`);
}

/** The Messages API of Anthropic. */
export const anthropicWire: Wire = {
  name: "anthropic",
  route(path) {
    if (path === "/v1/messages") return { wire: anthropicWire, kind: "call" };
    return path === "/v1/messages/count_tokens" ? { wire: anthropicWire, kind: "count" } : undefined;
  },
  read(body) {
    const { model, thinking } = body;
    const found = new Findings();
    found.members(body, members);
    const thinks = isObject(thinking) ? countIn(thinking["budget_tokens"]) : undefined;
    return {
      model: textIn(model),
      outputLimit: found.limit(body, "max_tokens"),
      limitPath: ["max_tokens"],
      added: [],
      found,
      ...(thinks !== undefined && {
        thinking: { tokens: thinks, path: ["thinking", "budget_tokens"], least: leastThinking },
      }),
    };
  },
  countPath: "/v1/messages/count_tokens",
  countMembers: ["model", "messages", "system", "tools", "tool_choice", "thinking"],
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
