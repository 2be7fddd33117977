import { inputRequired, type ElicitResult } from "@modelcontextprotocol/server";
import {
  type ApprovalDecision,
  type ApprovalKind,
  type ApprovalRequest,
  type JsonObject,
  type JsonValue,
  visibleLine,
  visibleText,
} from "../../kernel/index.ts";

type InputRequest = ReturnType<typeof inputRequired.elicit>;
type FormSchema = Extract<
  Parameters<typeof inputRequired.elicit>[0]["requestedSchema"],
  { readonly type: "object" }
>;

const confirmation: FormSchema = { type: "object", properties: {} };
const textAnswer: FormSchema = { type: "object", properties: { answer: { type: "string" } } };

const requiredAnswer: FormSchema = { ...textAnswer, required: ["answer"] };

/**
 * Converts an approval request of a run to a question for the host's user. Only its `kind` determines how it is
 * shown; the arguments have no influence. The user always sees which tool asks, and with which arguments, including
 * hidden characters.
 */
export function hostQuestion(request: ApprovalRequest): InputRequest {
  const { kind, toolName, reason } = request;
  if (kind === "elicitation") return elicitation(request);
  if (kind === "confirm") return elicit(`${toolName} asks: ${reason}`, confirmation);
  if (kind === "select" || kind === "input")
    return elicit(`${toolName} asks: ${reason}`, kind === "input" ? requiredAnswer : choiceOf(request));
  if (kind === "question" || kind === "client_tool")
    return elicit(`${toolName} asks: ${reason}\n${argumentsText(request)}`, textAnswer);
  return elicit(
    `${toolName} is about to run with ${argumentsText(request)} (${reason}). Allow it?`,
    confirmation,
  );
}

function elicit(message: string, requestedSchema: FormSchema): InputRequest {
  return inputRequired.elicit({ message: visibleText(message), requestedSchema });
}

/**
 * Returns a form or URL request of an MCP server for the host. The message names the tool, so that it cannot look
 * like another question.
 */
function elicitation(request: ApprovalRequest): InputRequest {
  const { toolName, reason, input } = request;
  const { message: text, requestedSchema, url } = isObject(input) ? input : {};
  const isShown = typeof text !== "string" || reason.includes(text);
  const message = `${toolName} asks: ${isShown ? reason : `${reason}: ${text}`}`;
  if (typeof url === "string")
    return inputRequired.elicitUrl({ message: visibleText(`${message}\n${url}`), url });
  if (isObject(requestedSchema))
    return elicit(message, visibleForm(requestedSchema) as unknown as FormSchema);
  return elicit(`${message}\n${argumentsText(request)}`, textAnswer);
}

const shownInForm: ReadonlySet<string> = new Set(["title", "description"]);

/**
 * Returns a form whose titles and descriptions show hidden characters. Names and values do not change, because the
 * answer contains them.
 */
function visibleForm(schema: JsonValue): JsonValue {
  if (Array.isArray(schema)) return schema.map(visibleForm);
  if (!isObject(schema)) return schema;
  return Object.fromEntries(
    Object.entries(schema).map(([name, value]) => [
      name,
      shownInForm.has(name) && typeof value === "string" ? visibleText(value) : visibleForm(value ?? null),
    ]),
  );
}

/** Returns the arguments as the model sent them. If they are executed in another form, returns that form too. */
function argumentsText({ input, parsedInput }: ApprovalRequest): string {
  const sent = JSON.stringify(input);
  return parsedInput === undefined ? sent : `${JSON.stringify(parsedInput)} (sent as ${sent})`;
}

/** Converts the host's answer to a decision. Any answer that does not accept or decline skips the question. */
export function hostDecision(
  answer: unknown,
  { kind, by }: { readonly kind: ApprovalKind; readonly by: string },
): ApprovalDecision {
  const { action, content } = (answer ?? {}) as Partial<ElicitResult>;
  if (action === "decline") return { decision: "denied", by };
  if (action !== "accept") return { decision: "skipped", by };
  const input = answerOf(kind, content);
  return { decision: "approved", by, ...(input !== undefined && { input }) };
}

/**
 * Returns the content of an answer. An approval of a tool call has no content, because the host cannot change the
 * arguments.
 */
function answerOf(kind: ApprovalKind, content: JsonObject = {}): JsonValue | undefined {
  if (kind === "elicitation") return content;
  // A call of a client-side tool always has a result.
  if (kind === "client_tool") return content["answer"] ?? null;
  return hasAnswer(kind) ? content["answer"] : undefined;
}

function hasAnswer(kind: ApprovalKind): boolean {
  return kind === "question" || kind === "select" || kind === "input";
}

/** Returns the form of a question whose answer is one of its choices. */
function choiceOf({ input }: ApprovalRequest): FormSchema {
  const { choices } = isObject(input) ? input : {};
  const texts = Array.isArray(choices) ? choices.filter((choice) => typeof choice === "string") : [];
  const isPlain = texts.every((text) => visibleLine(text) === text);
  const titled = texts.map((text) => ({ const: text, title: visibleLine(text) }));
  return {
    type: "object",
    properties: { answer: { type: "string", ...(isPlain ? { enum: [...texts] } : { oneOf: titled }) } },
    required: ["answer"],
  };
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
