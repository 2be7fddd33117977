import type { ClientTool, JsonObject, JsonValue, Usage } from "../../../kernel/index.ts";
import { totalTokens } from "../../../kernel/index.ts";
import {
  anyJson,
  anyObject,
  choice,
  flag,
  integer,
  list,
  named,
  nullable,
  number,
  object,
  text,
  type ValueOf,
} from "../../http/schema/schema.ts";
import { responseIdOf, type ResponsePlace } from "./openai-ids.ts";
import type { ResponseEcho } from "./response-parameters.ts";

const usage = object({
  input_tokens: integer(),
  output_tokens: integer(),
  total_tokens: integer(),
  input_tokens_details: object({ cached_tokens: integer() }),
  output_tokens_details: object({ reasoning_tokens: integer() }),
});

const statuses = ["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"] as const;

/** The answer of an agent in the form of Open Responses. */
export const responseSchema = named(
  "Response",
  object({
    id: text({ description: "`resp_` and the id of the run." }),
    object: choice(["response"]),
    created_at: integer({ description: "Epoch seconds." }),
    completed_at: nullable(integer({ description: "Epoch seconds." })),
    status: choice(statuses),
    background: flag(),
    error: nullable(object({ code: text(), message: text() })),
    incomplete_details: nullable(object({ reason: text() })),
    instructions: nullable(text()),
    max_output_tokens: nullable(integer()),
    max_tool_calls: nullable(integer()),
    metadata: anyObject(),
    model: text({ description: "Name of the agent." }),
    output: list(anyObject(), { description: "Items: `message`, `function_call`, `reasoning`." }),
    parallel_tool_calls: flag(),
    previous_response_id: nullable(text()),
    prompt_cache_key: nullable(text()),
    reasoning: nullable(anyObject()),
    safety_identifier: nullable(text()),
    service_tier: text(),
    store: flag(),
    temperature: number(),
    top_p: number(),
    presence_penalty: number(),
    frequency_penalty: number(),
    top_logprobs: integer(),
    text: anyObject(),
    tool_choice: anyJson(),
    tools: list(anyObject()),
    truncation: text(),
    usage: nullable(usage),
  }),
);

export type ResponseResource = ValueOf<typeof responseSchema>;

/** What does not change during an answer. */
export interface ResponseHead {
  readonly place: ResponsePlace;
  /** Epoch milliseconds. */
  readonly createdAt: number;
  /** Name of the agent. */
  readonly model: string;
  readonly previous: string | null;
  readonly echo: ResponseEcho;
  readonly tools: readonly ClientTool[];
}

/** What changes during an answer. */
export interface ResponseState extends Pick<ResponseResource, "status" | "output"> {
  readonly error?: ResponseResource["error"];
  /** Why the answer is incomplete. */
  readonly reason?: string;
  readonly usage?: Usage;
  /** Epoch milliseconds. */
  readonly completedAt?: number;
}

/** Reports absent sampling parameters as the API of OpenAI does: with the value that changes nothing. */
export function responseOf(
  { place, createdAt, model, previous, echo, tools }: ResponseHead,
  { status, output, error = null, reason, usage: used, completedAt }: ResponseState,
): ResponseResource {
  return {
    id: responseIdOf(place),
    object: "response",
    created_at: seconds(createdAt),
    completed_at: completedAt === undefined ? null : seconds(completedAt),
    status,
    background: echo.background ?? false,
    error,
    incomplete_details: reason === undefined ? null : { reason },
    instructions: echo.instructions ?? null,
    max_output_tokens: echo.max_output_tokens ?? null,
    max_tool_calls: null,
    metadata: { ...echo.metadata },
    model,
    output,
    parallel_tool_calls: true,
    previous_response_id: previous,
    prompt_cache_key: echo.prompt_cache_key ?? null,
    reasoning: { effort: null, summary: null },
    safety_identifier: echo.safety_identifier ?? null,
    service_tier: "default",
    store: echo.store ?? true,
    temperature: echo.temperature ?? 1,
    top_p: echo.top_p ?? 1,
    presence_penalty: echo.presence_penalty ?? 0,
    frequency_penalty: echo.frequency_penalty ?? 0,
    top_logprobs: 0,
    text: echo.text?.["format"] ? { format: formatOf(echo.text["format"]) } : { format: { type: "text" } },
    tool_choice: echo.tool_choice ?? "auto",
    tools: tools.map((tool) => functionTool(tool)),
    truncation: echo.truncation ?? "disabled",
    usage: used === undefined ? null : usageOf(used),
  };
}

function formatOf(format: JsonValue): JsonValue {
  const given = format as JsonObject;
  return given["type"] === "json_schema" ? { description: null, strict: false, ...given } : format;
}

function functionTool({ name, description, inputSchema }: ClientTool): JsonObject {
  return { type: "function", name, description, parameters: inputSchema, strict: null };
}

function usageOf(used: Usage): ValueOf<typeof usage> {
  return {
    input_tokens: used.inputTokens,
    output_tokens: used.outputTokens,
    total_tokens: totalTokens(used),
    input_tokens_details: { cached_tokens: used.cacheReadTokens },
    output_tokens_details: { reasoning_tokens: used.reasoningTokens },
  };
}

function seconds(ms: number): number {
  return Math.floor(ms / 1000);
}
