import {
  Fault,
  nearestName,
  type CallSettings,
  type JsonObject,
  type JsonValue,
} from "../../../kernel/index.ts";
import {
  anyJson,
  anyObject,
  flag,
  integer,
  list,
  nullable,
  number,
  object,
  optional,
  schemaOf,
  text,
  type OptionalSchema,
  type Schema,
  type ValueOf,
} from "../../http/schema/schema.ts";

/** A message of a request. `openai-messages.ts` checks its contents. */
export interface OpenAiMessage {
  readonly role: "system" | "developer" | "user" | "assistant" | "tool" | "function";
  readonly [field: string]: JsonValue;
}

const message = schemaOf<OpenAiMessage>({
  type: "object",
  description: "Content is a text or a list of parts: `text`, `image_url`, `input_audio`, `file`.",
  properties: {
    role: { type: "string", enum: ["system", "developer", "user", "assistant", "tool", "function"] },
    content: {},
  },
  required: ["role"],
});

const maxMessages = 10_000;
export const harmless = { description: "Accepted without effect." };
export const settable = <Value>(of: Schema<Value>): OptionalSchema<Value | null> => optional(nullable(of));

/** The most tools that a request may bring along. */
export const maxTools = 128;
/** The metadata of a request. */
export const metadataSchema = schemaOf<Readonly<Record<string, string>>>({
  type: "object",
  maxProperties: 16,
  additionalProperties: { type: "string", maxLength: 512 },
  description: "Metadata of the run.",
});

/** The parameters that are used or accepted. `checkParameters` refuses all others with an explanation. */
export const completionBody = object(
  {
    model: text({ minLength: 1, description: "Name of an agent of this server." }),
    messages: list(message, { minItems: 1, maxItems: maxMessages }),
    stream: settable(flag()),
    stream_options: settable(anyObject({ description: "`include_usage` is used." })),
    temperature: settable(number({ minimum: 0, maximum: 2 })),
    top_p: settable(number({ minimum: 0, maximum: 1 })),
    seed: settable(integer()),
    presence_penalty: settable(number({ minimum: -2, maximum: 2 })),
    frequency_penalty: settable(number({ minimum: -2, maximum: 2 })),
    max_tokens: settable(integer({ minimum: 1, description: "Of each model call of the agent." })),
    max_completion_tokens: settable(integer({ minimum: 1, description: "Like `max_tokens`." })),
    response_format: settable(anyObject({ description: "`text`, `json_object` or `json_schema`." })),
    metadata: settable(metadataSchema),
    tools: settable(
      list(anyObject(), { maxItems: maxTools, description: "Functions that the client executes." }),
    ),
    tool_choice: settable(anyJson({ description: "`auto`, `none`, `required`, or a function." })),
    user: settable(text(harmless)),
    safety_identifier: settable(text(harmless)),
    prompt_cache_key: settable(text(harmless)),
    prompt_cache_retention: settable(text(harmless)),
    service_tier: settable(text(harmless)),
    store: settable(flag(harmless)),
    parallel_tool_calls: settable(flag(harmless)),
  },
  { additionalProperties: true },
);

export type CompletionBody = ValueOf<typeof completionBody>;

export interface Refused {
  /** Returns whether a value means the same as an absent value. `null` is always such a value. */
  readonly isNeutral: (value: JsonValue) => boolean;
  /** Explains why other values are refused, and what to do instead. */
  readonly advice: string;
}

export const isEmpty = (value: JsonValue): boolean =>
  typeof value === "object" && value !== null && Object.keys(value).length === 0;
const isChoice = (value: JsonValue): boolean => value === "none" || value === "auto";
export const never = (): boolean => false;
export const noLogProbabilities = "agents return no log probabilities";
export const ownThinking = "set the thinking level in the agent or its session";
const useTools = "use `tools` and `tool_choice`";

/** Parameters that would change the answer, but that agents do not support. */
const refused: Readonly<Record<string, Refused>> = {
  functions: { isNeutral: isEmpty, advice: useTools },
  function_call: { isNeutral: isChoice, advice: useTools },
  n: { isNeutral: (value) => value === 1, advice: "an agent gives one answer; send several requests" },
  logprobs: { isNeutral: (value) => value === false, advice: noLogProbabilities },
  top_logprobs: { isNeutral: (value) => value === 0, advice: noLogProbabilities },
  logit_bias: { isNeutral: isEmpty, advice: "set it in the model of the agent" },
  stop: { isNeutral: isEmpty, advice: "agents have no stop sequences; cut the answer in your program" },
  modalities: {
    isNeutral: (value) => JSON.stringify(value) === '["text"]',
    advice: "agents answer with text",
  },
  audio: { isNeutral: never, advice: "agents answer with text" },
  prediction: { isNeutral: never, advice: "agents have no predicted output; remove the parameter" },
  reasoning_effort: { isNeutral: never, advice: ownThinking },
  verbosity: { isNeutral: never, advice: "say it in a system message" },
  web_search_options: { isNeutral: never, advice: "the agent has its own tools; remove the parameter" },
};

/** Refuses parameters of a chat completion that cannot be honoured. */
export function checkCompletion(body: CompletionBody): void {
  checkParameters(body, completionBody, refused);
}

/** Refuses parameters that are unknown, and values that would change the answer but cannot be honoured. */
export function checkParameters(
  body: JsonObject,
  { json }: Schema,
  table: Readonly<Record<string, Refused>>,
): void {
  const known = Object.keys(json["properties"] as JsonObject);
  for (const [name, value] of Object.entries(body)) {
    if (known.includes(name) || value === null) continue;
    const rule = Object.hasOwn(table, name) ? table[name] : undefined;
    if (rule === undefined) throw unknownParameter(name, known);
    if (!rule.isNeutral(value))
      throw invalidParameter(name, `parameter ${name} is not supported: ${rule.advice}`);
  }
}

function unknownParameter(name: string, known: readonly string[]): Fault {
  const nearest = nearestName(name, known);
  const advice = nearest === undefined ? "remove it" : `use ${nearest}`;
  return invalidParameter(name, `unknown parameter ${JSON.stringify(name)}: ${advice}`);
}

export function invalidParameter(param: string, detail: string): Fault {
  return new Fault("invalid_argument", detail, { details: { param } });
}

/** The settings of the model calls of the agent. */
export function completionSettings(body: CompletionBody): CallSettings | undefined {
  return settingsOf({
    temperature: body.temperature,
    topP: body.top_p,
    seed: body.seed,
    presencePenalty: body.presence_penalty,
    frequencyPenalty: body.frequency_penalty,
    maxOutputTokens: body.max_completion_tokens ?? body.max_tokens,
    toolChoice: toolChoiceOf(body.tool_choice),
  });
}

/** Settings without those that a request leaves out. `undefined` if none is left. */
export function settingsOf(given: {
  readonly [Name in keyof CallSettings]: CallSettings[Name] | null | undefined;
}): CallSettings | undefined {
  const settings = Object.fromEntries(
    Object.entries(given).filter(([, value]) => value !== undefined && value !== null),
  );
  return Object.keys(settings).length === 0 ? undefined : settings;
}

/** What the first model call has to do with tools. A function is named as in chat completions, or as in responses. */
export function toolChoiceOf(choice: JsonValue | undefined): CallSettings["toolChoice"] {
  if (choice === undefined || choice === null) return undefined;
  if (choice === "auto" || choice === "none" || choice === "required") return choice;
  const { type, name, function: named } = isObject(choice) ? choice : ({} as JsonObject);
  const toolName = isObject(named) ? named["name"] : name;
  if (type === "function" && typeof toolName === "string") return { toolName };
  throw invalidParameter(
    "tool_choice",
    "invalid tool_choice: expected auto, none, required or one function; lists of allowed tools are not supported",
  );
}

/** Returns the JSON Schema for the answer. `undefined` if the answer is a text. */
export function outputSchemaOf({ response_format: format }: CompletionBody): JsonObject | undefined {
  if (format === undefined || format === null || format["type"] === "text") return undefined;
  if (format["type"] === "json_object") return { type: "object" };
  const { json_schema: wrapper } = format;
  const schema = isObject(wrapper) ? wrapper["schema"] : undefined;
  if (format["type"] === "json_schema" && isObject(schema)) return schema;
  throw invalidParameter(
    "response_format",
    'invalid response_format: expected { type: "text" }, { type: "json_object" } or { type: "json_schema", json_schema: { name, schema } }',
  );
}

/** Whether the last message of a stream contains the usage. */
export function includesUsage({ stream_options: options }: CompletionBody): boolean {
  return options?.["include_usage"] === true;
}

export function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
