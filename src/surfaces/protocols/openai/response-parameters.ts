import type { CallSettings, JsonObject, JsonValue } from "../../../kernel/index.ts";
import {
  anyJson,
  anyObject,
  flag,
  integer,
  list,
  number,
  object,
  schemaOf,
  text,
  type ValueOf,
} from "../../http/schema/schema.ts";
import {
  checkParameters,
  harmless,
  invalidParameter,
  isEmpty,
  isObject,
  maxTools,
  metadataSchema,
  never,
  noLogProbabilities,
  ownThinking,
  settable,
  settingsOf,
  toolChoiceOf,
  type Refused,
} from "./openai-parameters.ts";

/** The parameters that are used or accepted. Others are refused by `checkResponse`, which explains them. */
export const responseBody = object(
  {
    model: text({ minLength: 1, description: "Name of an agent of this server." }),
    input: schemaOf<JsonValue>({
      anyOf: [{ type: "string" }, { type: "array", items: { type: "object" }, maxItems: 10_000 }],
      description:
        "A text, or items: `message`, `function_call`, `function_call_output`, `reasoning`, `item_reference`.",
    }),
    previous_response_id: settable(
      text({ maxLength: 200, description: "The answer after which the conversation continues." }),
    ),
    instructions: settable(text({ description: "Text that follows the instructions of the agent." })),
    stream: settable(flag()),
    background: settable(flag({ description: "Answer at once, and continue without the client." })),
    store: settable(flag({ description: "Whether the answer can be retrieved. Default: `true`." })),
    tools: settable(
      list(anyObject(), { maxItems: maxTools, description: "Functions that the client executes." }),
    ),
    tool_choice: settable(anyJson({ description: "`auto`, `none`, `required`, or a function." })),
    parallel_tool_calls: settable(flag(harmless)),
    temperature: settable(number({ minimum: 0, maximum: 2 })),
    top_p: settable(number({ minimum: 0, maximum: 1 })),
    presence_penalty: settable(number({ minimum: -2, maximum: 2 })),
    frequency_penalty: settable(number({ minimum: -2, maximum: 2 })),
    max_output_tokens: settable(integer({ minimum: 1, description: "Of each model call of the agent." })),
    text: settable(anyObject({ description: "`format` is used." })),
    reasoning: settable(anyObject({ description: "`summary` is accepted without effect." })),
    metadata: settable(metadataSchema),
    include: settable(list(text(), harmless)),
    truncation: settable(text(harmless)),
    stream_options: settable(anyObject(harmless)),
    user: settable(text(harmless)),
    safety_identifier: settable(text(harmless)),
    prompt_cache_key: settable(text(harmless)),
    prompt_cache_retention: settable(text(harmless)),
    service_tier: settable(text(harmless)),
  },
  { additionalProperties: true },
);

export type ResponseBody = ValueOf<typeof responseBody>;

/** Parameters that would change the answer, and that agents do not have. */
const refused: Readonly<Record<string, Refused>> = {
  conversation: { isNeutral: never, advice: "continue an answer with `previous_response_id`" },
  prompt: { isNeutral: never, advice: "the instructions of the agent are in its definition" },
  max_tool_calls: { isNeutral: never, advice: "set the budget of the agent" },
  top_logprobs: { isNeutral: (value) => value === 0, advice: noLogProbabilities },
  context_management: { isNeutral: isEmpty, advice: "the agent shortens its conversations itself" },
};

/** Refuses parameters that cannot be honoured, and those that contradict each other. */
export function checkResponse(body: ResponseBody): void {
  checkParameters(body, responseBody, refused);
  const { effort = null } = body.reasoning ?? {};
  if (effort !== null)
    throw invalidParameter("reasoning", `parameter reasoning.effort is not supported: ${ownThinking}`);
  const { verbosity = null } = body.text ?? {};
  if (verbosity !== null)
    throw invalidParameter("text", "parameter text.verbosity is not supported: say it in `instructions`");
  if (body.background === true && body.store === false)
    throw invalidParameter(
      "store",
      "store: false is not supported with background: true, because the answer is retrieved later; remove store",
    );
}

/** The settings of the model calls of the agent. */
export function responseSettings(body: ResponseBody): CallSettings | undefined {
  return settingsOf({
    temperature: body.temperature,
    topP: body.top_p,
    presencePenalty: body.presence_penalty,
    frequencyPenalty: body.frequency_penalty,
    maxOutputTokens: body.max_output_tokens,
    toolChoice: toolChoiceOf(body.tool_choice),
  });
}

/** The JSON Schema that the answer must match. `undefined` if the answer is a text. */
export function responseSchemaOf({ text: given }: Pick<ResponseBody, "text">): JsonObject | undefined {
  const format = given?.["format"];
  if (format === undefined || format === null) return undefined;
  const { type, schema } = isObject(format) ? format : ({} as JsonObject);
  if (type === "text") return undefined;
  if (type === "json_object") return { type: "object" };
  if (type === "json_schema" && isObject(schema)) return schema;
  throw invalidParameter(
    "text",
    'invalid text.format: expected { type: "text" }, { type: "json_object" } or { type: "json_schema", name, schema }',
  );
}

/** The name under which the metadata of a run has the request that started it. */
export const echoKey = "openResponses";

/** Parameters of a request that its answer contains, and that are stored with the run. */
const echoed = [
  "previous_response_id",
  "instructions",
  "background",
  "store",
  "tool_choice",
  "temperature",
  "top_p",
  "presence_penalty",
  "frequency_penalty",
  "max_output_tokens",
  "text",
  "metadata",
  "truncation",
  "safety_identifier",
  "prompt_cache_key",
] as const satisfies readonly (keyof ResponseBody)[];

export type ResponseEcho = Pick<ResponseBody, (typeof echoed)[number]>;

/** Longer instructions and schemas are not part of the answer, because the metadata of a run is small. */
const longestEcho = 8_000;

/** The metadata of the run of a request. */
export function metadataOf(body: ResponseBody): JsonObject {
  const { metadata } = body;
  if (metadata !== null && metadata !== undefined && Object.hasOwn(metadata, echoKey))
    throw invalidParameter("metadata", `invalid metadata: the key ${echoKey} is taken; rename it`);
  const kept = echoed.flatMap((name) => {
    const value = body[name];
    const isAbsent = value === undefined || value === null;
    const isLong =
      (name === "instructions" || name === "text") && JSON.stringify(value ?? "").length > longestEcho;
    if (isAbsent || (isLong && name === "instructions")) return [];
    return [[name, isLong ? shortText(body) : value]];
  });
  return { ...metadata, [echoKey]: Object.fromEntries(kept) as JsonObject };
}

/** The format of the answer without its schema. */
function shortText({ text: given }: ResponseBody): JsonValue {
  const format = given?.["format"];
  return { format: isObject(format) ? { ...format, schema: {} } : {} };
}
