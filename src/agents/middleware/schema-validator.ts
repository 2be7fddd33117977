import {
  assistantMessage,
  formatIssue,
  Fault,
  MiddlewareTermination,
  messageText,
  toolCallsOf,
  userMessage,
  type AssistantMessage,
  type ChatContext,
  type MiddlewareFunction,
  type ModelResponse,
  type ResponseFormat,
  type StandardSchema,
} from "../../kernel/index.ts";
import { unfenced } from "../answer-format.ts";
import type { Layer } from "./layer.ts";
import { atLeast } from "./option-range.ts";

export interface SchemaValidatorOptions {
  /** Any Standard Schema, such as zod's. */
  readonly schema: StandardSchema;
  /** How often the model is shown what was wrong and asked again; each is a call that is paid. 2 unless told. */
  readonly maxRepairs?: number;
  /**
   * An answer that never fitted: `pass` lets it through, `fail` makes it a failed call (`model_format_error`), `terminate` stops the
   * run. `pass` unless told.
   */
  readonly onInvalid?: "pass" | "fail" | "terminate";
  /** Asked of providers that can hold the model to it. The answer is then the JSON alone, without a code block around it. */
  readonly format?: ResponseFormat;
  /** Which roles' answers; `main` unless told. */
  readonly roles?: readonly string[];
}

/**
 * Reads the model's answer as JSON by a schema. Leaves `metadata.schemaValid` and, when it fits, `metadata.parsed`. A message that
 * calls tools is not the answer yet and is let through.
 */
export function schemaValidator(
  options: SchemaValidatorOptions,
): Layer & { readonly chat: MiddlewareFunction<ChatContext> } {
  const { schema, maxRepairs = 2, onInvalid = "pass", roles = ["main"], format } = options;
  atLeast("schemaValidator: maxRepairs", maxRepairs, 0);
  return {
    name: "schema-validator",
    chat: async (context, next) => {
      if (!roles.includes(context.role)) return next();
      const request = format === undefined ? context.request : { ...context.request, responseFormat: format };
      context.request = request;
      for (let repairs = 0; ; repairs++) {
        await next();
        const { result } = context;
        if (result === undefined || toolCallsOf(result.message).length > 0) return;
        const problems = await problemsOf(schema, result, context.metadata);
        context.metadata["schemaValid"] = problems.length === 0;
        if (problems.length === 0) {
          if (format !== undefined) context.result = { ...result, message: bare(result.message) };
          return;
        }
        // An answer that met its limit meets it again.
        if (repairs === maxRepairs || result.stopReason === "length") return giveUp(problems);
        context.request = { ...request, messages: [...request.messages, ...correction(result, problems)] };
      }
    },
  };

  function giveUp(problems: readonly string[]): void {
    if (onInvalid === "pass") return;
    const message = `the answer does not fit its schema: ${problems.join("; ")}`;
    if (onInvalid === "fail") throw new Fault("model_format_error", message, { details: { problems } });
    throw new MiddlewareTermination(message, {
      by: "schema-validator",
      details: { problems },
    });
  }
}

/** Nothing: it fits, and what was read is left in the metadata. */
async function problemsOf(
  schema: StandardSchema,
  { message }: ModelResponse,
  metadata: ChatContext["metadata"],
): Promise<readonly string[]> {
  delete metadata["parsed"];
  let value: unknown;
  try {
    value = JSON.parse(unfenced(messageText(message)));
  } catch (error) {
    return [`it is not JSON: ${error instanceof Error ? error.message : String(error)}`];
  }
  const read = await schema["~standard"].validate(value);
  if (read.issues !== undefined) return read.issues.map(formatIssue);
  metadata["parsed"] = read.value;
  return [];
}

/** The JSON alone; everything but text stays. */
function bare(message: AssistantMessage): AssistantMessage {
  const text = messageText(message);
  if (unfenced(text) === text) return message;
  const rest = message.content.filter(({ type }) => type !== "text");
  return { ...message, content: [...rest, { type: "text", text: unfenced(text) }] };
}

function correction(
  { message }: ModelResponse,
  problems: readonly string[],
): ChatContext["request"]["messages"] {
  const asked = `That does not fit the schema: ${problems.join("; ")}. Answer again, with the whole JSON and nothing else.`;
  const text = messageText(message);
  return [assistantMessage(text === "" ? "(no text)" : text), userMessage(asked)];
}
