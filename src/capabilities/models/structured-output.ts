import {
  Fault,
  toolCallsOf,
  userMessage,
  type AssistantMessage,
  type ChatMiddleware,
  type Infer,
  type JsonValue,
  type ModelResponse,
  type Schema,
} from "../../kernel/index.ts";
import { schemaReader } from "../tools/schema-reader.ts";
import { readJsonAnswer } from "./json-answer.ts";

export interface StructuredOutputOptions<Source extends Schema> {
  /** Any Standard Schema that can describe itself as JSON Schema (zod), or a plain JSON Schema written `as const`. */
  readonly schema: Source;
  /** Some providers show it to the model. */
  readonly name?: string;
  readonly description?: string;
  /** How often the model is asked again when its answer does not fit. 2 unless told. */
  readonly repairs?: number;
}

/** Middleware for an agent whose answers are values. */
export interface StructuredOutput<Value> extends ChatMiddleware {
  /** The value of an answer that went through it, such as a run's output. */
  parse(answer: JsonValue): Promise<Value>;
}

/**
 * Asks for answers that fit a schema: by the provider's own means where it has them, and by asking again, a bounded number of times,
 * with what was wrong. It stands around the model call, so each time it asks is a call of its own: reserved, retried, paid and told.
 * Answers that call tools pass as they are.
 */
export function structuredOutput<const Source extends Schema>(
  options: StructuredOutputOptions<Source>,
): StructuredOutput<Infer<Source>> {
  const { schema, name = "answer", description, repairs = 2 } = options;
  if (!Number.isSafeInteger(repairs) || repairs < 0)
    throw new Fault("invalid_argument", `repairs is ${repairs}: it must be a whole number, 0 or more`);
  const owner = {
    schemaName: `schema of the output ${name}`,
    refuse: (problems: readonly string[]) => new Fault("invalid_argument", problems.join("; ")),
  };
  const { jsonSchema, parse } = schemaReader<Infer<Source>>(owner, schema);
  const format = {
    type: "json",
    schema: jsonSchema,
    name,
    ...(description === undefined ? {} : { description }),
  } as const;

  const read = async (answer: ModelResponse): Promise<Reading> => {
    const value = readJsonAnswer(answer.message);
    if (value === undefined) return { problem: "it is not one JSON value" };
    try {
      await parse(value);
      return { value };
    } catch (error) {
      if (!Fault.is(error) || error.code !== "invalid_argument") throw error;
      return { problem: error.message };
    }
  };

  return {
    parse: async (answer) => parse(typeof answer === "string" ? readText(answer, name) : answer),
    process: async (context, next) => {
      const asked = { ...context.request, responseFormat: format };
      context.request = asked;
      for (let left = repairs; ; left--) {
        await next();
        const { result } = context;
        if (result === undefined || toolCallsOf(result.message).length > 0) return;
        if (result.stopReason === "content_blocked") return;
        const reading = await read(result);
        if ("value" in reading) {
          context.result = { ...result, message: withText(result.message, JSON.stringify(reading.value)) };
          return;
        }
        // An answer that met its limit meets it again.
        if (left === 0 || result.stopReason === "length") throw misfit(name, reading.problem, result);
        const note = `Your answer does not fit: ${reading.problem}. Answer again with one JSON value that fits this JSON Schema, and nothing else:\n${JSON.stringify(jsonSchema)}`;
        context.request = { ...asked, messages: [...asked.messages, result.message, userMessage(note)] };
      }
    },
  };
}

type Reading = { readonly value: JsonValue } | { readonly problem: string };

function readText(text: string, name: string): JsonValue {
  const value = readJsonAnswer({ role: "assistant", content: [{ type: "text", text }] });
  if (value === undefined)
    throw new Fault("invalid_argument", `the text is not the output ${name}: it is not one JSON value`);
  return value;
}

function misfit(name: string, problem: string, { stopReason }: ModelResponse): Fault {
  const why =
    stopReason === "length"
      ? "the answer was cut at its output limit"
      : "it was asked again as often as allowed";
  return new Fault(
    "model_format_error",
    `the model's answer does not fit the output ${name}: ${problem} (${why})`,
  );
}

/** The value alone, where words or a fence stood around it; everything but text stays. */
function withText(message: AssistantMessage, text: string): AssistantMessage {
  const texts = message.content.filter(({ type }) => type === "text");
  const [only] = texts;
  if (texts.length === 1 && only?.type === "text" && isJson(only.text)) return message;
  const rest = message.content.filter(({ type }) => type !== "text");
  return { ...message, content: [...rest, { type: "text", text }] };
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
