import {
  type ApprovalRequest,
  type JsonObject,
  type JsonValue,
  type UserPart,
} from "../../../kernel/index.ts";
import type { AskedQuestion, ClientAnswer } from "../client-answers.ts";
import { checkedContent, sourceOf } from "../user-content.ts";
import { a2aFault } from "./a2a-errors.ts";
import type { WireMessage, WirePart } from "./a2a-schema.ts";

/**
 * The input that a message is for an agent. For an agent with a schema, it is the value of the only data part; for all
 * others, the parts of the message.
 */
export function inputOf({ messageId, parts }: WireMessage, takesJson: boolean): JsonValue {
  const [first] = parts;
  if (takesJson && parts.length === 1 && first?.data !== undefined) return first.data;
  return checkedContent(messageId, parts.map(partOf)) as unknown as JsonValue;
}

function partOf({ text, raw, url, data, mediaType, filename }: WirePart): UserPart {
  if (text !== undefined) return { type: "text", text };
  if (data !== undefined) return { type: "text", text: JSON.stringify(data) };
  const source = raw === undefined ? sourceOf(url ?? "") : ({ kind: "base64", data: raw } as const);
  if (mediaType?.startsWith("image/") === true) return { type: "image", mediaType, source };
  return {
    type: "file",
    mediaType: mediaType ?? "application/octet-stream",
    source,
    ...(filename !== undefined && filename !== "" && { filename }),
  };
}

/** What a message answers: a question, or with several data parts, several ones. */
export interface QuestionAnswer {
  readonly question: AskedQuestion;
  readonly answer: ClientAnswer;
}

/** Words that answer a question of yes or no, as people and models write them. */
const yes = new Set(["approve", "approved", "yes"]);
const no = new Set(["deny", "denied", "no"]);

/**
 * The answers of a message to the open questions of a task. Throws if the message does not say clearly what it answers: what
 * is not understood never approves anything.
 */
export function answersOf({ parts }: WireMessage, open: readonly AskedQuestion[]): readonly QuestionAnswer[] {
  const data = parts.flatMap((part) => (part.data === undefined ? [] : [part.data]));
  if (data.length > 0) return data.map((value) => dataAnswer(value, open));
  const said = parts.map(({ text = "" }) => text).join("\n");
  const [question] = open;
  if (open.length > 1 || question === undefined)
    throw unclear(open, `the task has ${open.length} open questions, and a text answers only one`);
  return [{ question, answer: textAnswer(said.trim(), question, open) }];
}

function dataAnswer(value: JsonValue, open: readonly AskedQuestion[]): QuestionAnswer {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw unclear(open, "the data part is not an object");
  const { questionId, approved, reason, input, result, isError } = value as Partial<JsonObject>;
  const question =
    questionId === undefined && open.length === 1
      ? open[0]
      : open.find((each) => each.questionId === questionId);
  if (question === undefined)
    throw unclear(open, `the task has no open question ${JSON.stringify(questionId ?? null)}`);
  if (question.request.kind === "client_tool") {
    if (result === undefined) throw unclear(open, "the tool call needs a result");
    return { question, answer: { type: "result", value: result, isError: isError === true } };
  }
  if (typeof approved !== "boolean") throw unclear(open, "approved is not true or false");
  const decision = approved
    ? ({ decision: "approved", ...(input !== undefined && { input }) } as const)
    : ({ decision: "denied", ...(typeof reason === "string" && { reason }) } as const);
  return { question, answer: { type: "decision", decision } };
}

function textAnswer(said: string, { request }: AskedQuestion, open: readonly AskedQuestion[]): ClientAnswer {
  const word = said.toLowerCase().replace(/[.!]$/u, "");
  if (request.kind === "client_tool") throw unclear(open, "a text is not the result of a tool call");
  if (no.has(word)) return { type: "decision", decision: { decision: "denied" } };
  if (takesText(request) && said !== "")
    return { type: "decision", decision: { decision: "approved", input: said } };
  if (yes.has(word)) return { type: "decision", decision: { decision: "approved" } };
  throw unclear(open, `the text is neither "approve" nor "deny"`);
}

/** Whether a text answers the question, and not only yes or no. */
function takesText({ kind }: ApprovalRequest): boolean {
  return kind === "question" || kind === "input" || kind === "select";
}

function unclear(open: readonly AskedQuestion[], problem: string): Error {
  const ids = open.map(({ questionId }) => JSON.stringify(questionId)).join(", ");
  return a2aFault(
    "INVALID_PARAMS",
    `invalid answer: ${problem}; send the text "approve" or "deny", or a data part { questionId, approved: true } or { questionId, approved: false, reason } (a tool call: { questionId, result }). Open: ${ids}`,
  );
}

/** What a task asks, as a message of the agent: a text for people and models, and the facts for programs. */
export function questionParts(
  questions: readonly { readonly questionId: string; readonly request: ApprovalRequest }[],
): readonly WirePart[] {
  return [
    { text: questions.map(({ request }) => questionText(request)).join("\n\n"), mediaType: "text/plain" },
    {
      data: { questions: questions.map(({ questionId, request }) => questionFacts(questionId, request)) },
      mediaType: "application/json",
    },
  ];
}

function questionFacts(questionId: string, request: ApprovalRequest): JsonObject {
  const { kind, toolName, input, parsedInput, reason } = request;
  return { questionId, kind, toolName, input: parsedInput ?? input, reason };
}

function questionText({ kind, toolName, input, parsedInput, reason }: ApprovalRequest): string {
  const value = JSON.stringify(parsedInput ?? input);
  if (kind === "client_tool")
    return `The task needs the result of ${toolName}(${value}). Answer with a data part that has a result.`;
  if (kind === "tool_call" || kind === "foreign_tool_call")
    return `The task asks to call ${toolName}(${value}): ${reason}. Answer "approve" or "deny".`;
  const { message, question } = (
    typeof input === "object" && input !== null && !Array.isArray(input) ? input : {}
  ) as Partial<JsonObject>;
  const asked = typeof message === "string" ? message : typeof question === "string" ? question : reason;
  return takesText({ kind } as ApprovalRequest) ? asked : `${asked} Answer "approve" or "deny".`;
}
