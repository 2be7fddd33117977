import {
  assistantMessage,
  Fault,
  formatIssue,
  messageText,
  MiddlewareTermination,
  toolCallsOf,
  userMessage,
  type AssistantMessage,
  type ChatContext,
  type MiddlewareFunction,
  type ModelResponse,
  type ResponseFormat,
  type StandardSchema,
  is,
  optionTable,
  type OptionKinds,
} from "../../../kernel/index.ts";
import { answersIn } from "../../base/json-in-text.ts";
import type { Layer } from "./layer.ts";

export interface SchemaValidatorOptions {
  /** A Standard Schema, such as one of zod. */
  readonly schema: StandardSchema;
  /**
   * Maximum number of times that the model is asked again with the problems. Each attempt is a paid call. Default:
   * 2.
   */
  readonly maxRepairs?: number;
  /**
   * What happens to an answer that still does not match. `"pass"`: it is returned. `"fail"`: `model_format_error`
   * is thrown. `"terminate"`: the run stops. Default: `"pass"`.
   */
  readonly onInvalid?: "pass" | "fail" | "terminate";
  /** The response format for providers that support one. The answer is then plain JSON without a code block. */
  readonly format?: ResponseFormat;
  /** The model roles whose answers are validated. Default: `main`. */
  readonly roles?: readonly string[];
}

const knownOptions = optionTable({
  schema: is.any,
  maxRepairs: is.number({ from: 0, default: 2 }),
  onInvalid: is.choice(["pass", "fail", "terminate"], { default: "pass" }),
  format: is.any,
  roles: is.list({ of: is.text() }),
} satisfies OptionKinds<SchemaValidatorOptions>);

/**
 * Creates middleware that validates the model's answer as JSON. It sets `metadata.schemaValid` and, if the answer
 * matches, `metadata.parsed`. A message with tool calls is not the final answer and is not changed.
 */
export function schemaValidator(
  options: SchemaValidatorOptions,
): Layer & { readonly chat: MiddlewareFunction<ChatContext> } {
  const {
    schema,
    maxRepairs,
    onInvalid,
    roles = ["main"],
    format,
  } = knownOptions.read("schemaValidator()", options);
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
        const { problems, text } = await readAnswer(schema, result, context.metadata);
        context.metadata["schemaValid"] = problems.length === 0;
        if (problems.length === 0) {
          if (format !== undefined) context.result = { ...result, message: bare(result.message, text) };
          return;
        }
        // An answer that was cut at the output limit would be cut again.
        if (repairs === maxRepairs || result.stopReason === "length") return giveUp(problems);
        context.request = { ...request, messages: [...request.messages, ...correction(result, problems)] };
      }
    },
  };

  function giveUp(problems: readonly string[]): void {
    if (onInvalid === "pass") return;
    const message = `the answer does not match its schema: ${problems.join("; ")}`;
    if (onInvalid === "fail") throw new Fault("model_format_error", message, { details: { problems } });
    throw new MiddlewareTermination(message, {
      by: "schema-validator",
      details: { problems },
    });
  }
}

/**
 * Finds the first JSON value in an answer that matches, and stores its parsed value in the metadata. If none matches,
 * returns the problems of the most likely one.
 */
async function readAnswer(
  schema: StandardSchema,
  { message }: ModelResponse,
  metadata: ChatContext["metadata"],
): Promise<{ readonly problems: readonly string[]; readonly text: string }> {
  delete metadata["parsed"];
  let first: readonly string[] | undefined;
  for (const { text, value } of answersIn(messageText(message))) {
    const read = await schema["~standard"].validate(value);
    if (read.issues === undefined) {
      metadata["parsed"] = read.value;
      return { problems: [], text };
    }
    first ??= read.issues.map(formatIssue);
  }
  return { problems: first ?? ["it is not JSON and contains no JSON list or object"], text: "" };
}

/** Replaces the text of a message by the JSON. Other parts are kept. */
function bare(message: AssistantMessage, json: string): AssistantMessage {
  if (messageText(message) === json) return message;
  const rest = message.content.filter(({ type }) => type !== "text");
  return { ...message, content: [...rest, { type: "text", text: json }] };
}

function correction(
  { message }: ModelResponse,
  problems: readonly string[],
): ChatContext["request"]["messages"] {
  const asked = `That does not match the schema: ${problems.join("; ")}. Answer again with the complete JSON and nothing else.`;
  const text = messageText(message);
  return [assistantMessage(text === "" ? "(no text)" : text), userMessage(asked)];
}
