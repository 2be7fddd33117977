import {
  Fault,
  isUserPart,
  userMessage,
  type Architecture,
  type ChatMessage,
  type InboxMode,
  type JsonSchema,
  type JsonValue,
  type Message,
  type RunContext,
  type TaskInbox,
  type Turn,
  type UserMessage,
  type UserPart,
  type WorkerBrief,
} from "../../kernel/index.ts";
import { beforeInterruption } from "./interrupted-end.ts";
import { isConversation, readConversation, type InputMessage } from "./input-messages.ts";

/**
 * The input of an agent. It is one of: a text; a text with images and files; the messages of a conversation whose
 * last one is the user's; a request that also describes the answer; the value of an input schema; or a request to
 * continue a session.
 */
export type AgentInput =
  | string
  | readonly UserPart[]
  | readonly InputMessage[]
  | AgentRequest
  | ValueRequest
  | ContinueRequest;

/** The input of an agent with the option `input`: the object that its schema describes. */
interface ValueRequest {
  readonly value: Readonly<Record<string, unknown>>;
}

/** The input of `Agent.continue`: the agent continues the session of the option `sessionId` without a new message. */
interface ContinueRequest {
  readonly continue: true;
  /** A JSON Schema that the answer must match. */
  readonly output?: JsonSchema;
}

interface AgentRequest {
  readonly prompt: string | readonly UserPart[] | readonly InputMessage[];
  /** A JSON Schema that the answer must match. */
  readonly output?: JsonSchema;
}

/** An input in the form in which an invocation uses it. */
export interface ReadInput {
  readonly prompt: string;
  /** All parts of an input that is more than one plain text, including its texts. Otherwise empty. */
  readonly attachments: readonly UserPart[];
  /** The new message. `undefined` if the input only continues a session; `prompt` is then empty. */
  readonly message: UserMessage | undefined;
  readonly output?: JsonSchema;
  /** What the summary of a compaction after this invocation must consider. */
  readonly compactionInstructions?: string;
  /** Instructions for this invocation. Only the parent of a worker can give them. */
  readonly instructions?: string;
  readonly history?: WorkerBrief["history"];
  /** The messages before the last one, if the input is a list of messages. */
  readonly earlier?: readonly ChatMessage[];
}

/** Reads an input. Returns `undefined` if it is not a valid input of an agent. */
export function readInput(input: JsonValue): ReadInput | undefined {
  if (typeof input === "string" || Array.isArray(input)) return readPrompt(input);
  if (typeof input !== "object" || input === null) return undefined;
  // A destructured rest would copy the other members, which an input from outside may have many of.
  const request = input as Readonly<Record<string, unknown>>;
  const { prompt, output, instructions, history, compactionInstructions } = request;
  const read = readPrompt(prompt) ?? (request["continue"] === true ? continuation : undefined);
  const fits =
    isAbsentOr(isRecord, output) &&
    isAbsentOr(isText, instructions) &&
    isAbsentOr(isText, compactionInstructions) &&
    isAbsentOr(isHistory, history);
  if (read === undefined || !fits) return undefined;
  return {
    ...read,
    ...(output && { output: output as JsonSchema }),
    ...(instructions && { instructions }),
    ...(history && { history }),
    ...(compactionInstructions && { compactionInstructions }),
  };
}

/** Whether an input has neither a text nor an image or a file. */
export function isEmptyInput({ prompt, attachments }: Pick<ReadInput, "prompt" | "attachments">): boolean {
  return prompt.trim() === "" && attachments.every(({ type }) => type === "text");
}

/** Returns an input in the form that can also describe the answer. */
export function requestOf(input: AgentInput): Exclude<AgentInput, string | readonly unknown[]> {
  return typeof input === "object" && !Array.isArray(input)
    ? (input as Exclude<AgentInput, string | readonly unknown[]>)
    : { prompt: input as AgentRequest["prompt"] };
}

const continuation: ReadInput = { prompt: "", attachments: [], message: undefined };

/** Reads the message of another agent. A body that is not an input is converted to JSON text. */
export function readMessage(body: JsonValue): ReadInput {
  const read = readInput(body);
  // Only a submission starts a conversation with messages.
  return read === undefined || read.earlier !== undefined ? ofParts(JSON.stringify(body)) : read;
}

/** An input and the inbox messages that it consists of. */
interface MailInput {
  readonly input: ReadInput;
  readonly messages: readonly Message[];
}

/** Groups the inbox messages of an activation into inputs. By default each message is its own conversation. */
export function mailIn(mode: InboxMode, { messages }: TaskInbox): readonly MailInput[] {
  return mode === "together"
    ? [{ input: readMessage(messages.map(({ from, body }) => ({ from, body }))), messages }]
    : messages.map((message) => ({ input: readMessage(message.body), messages: [message] }));
}

function readPrompt(prompt: unknown): ReadInput | undefined {
  if (typeof prompt === "string" || isParts(prompt)) return ofParts(prompt);
  return isConversation(prompt) ? ofConversation(prompt) : undefined;
}

function ofConversation(input: readonly unknown[]): ReadInput | undefined {
  const read = readConversation(input);
  if (typeof read === "string") return undefined;
  const { earlier, last } = read;
  return { ...ofParts(last.content), message: last, earlier };
}

function ofParts(content: string | readonly UserPart[]): ReadInput {
  if (typeof content === "string") return { prompt: content, attachments: [], message: userMessage(content) };
  const prompt = promptOf(content);
  const [only, ...others] = content;
  const isPlain = others.length === 0 && only?.type === "text" && only.providerMetadata === undefined;
  const attachments = isPlain ? [] : content;
  return { prompt, attachments, message: opening(prompt, attachments) };
}

/** Returns the texts of an input with several parts, each on its own line. */
function promptOf(parts: readonly UserPart[]): string {
  return parts.flatMap((part) => (part.type === "text" && part.text !== "" ? [part.text] : [])).join("\n");
}

/**
 * Returns the first message of an invocation. If the prompt is the text of the parts, the message has the parts
 * unchanged and in order. If an architecture has written a prompt around that text, the parts replace the text in
 * it. Any other prompt replaces the texts. An empty text is left out, because providers refuse it.
 */
export function opening(prompt: string, attachments: readonly UserPart[]): UserMessage {
  return attachments.length === 0 ? userMessage(prompt) : userMessage(promptParts(prompt, attachments));
}

/**
 * Returns the first message like `opening`, as a list. The list is empty if there are neither a prompt nor
 * attachments, because the invocation continues a session.
 */
export function openings(prompt: string, attachments: readonly UserPart[]): readonly UserMessage[] {
  return prompt === "" && attachments.length === 0 ? [] : [opening(prompt, attachments)];
}

/** Returns the parts of a message with this prompt and these attachments. */
export function promptParts(prompt: string, attachments: readonly UserPart[]): readonly UserPart[] {
  const asked = promptOf(attachments);
  const at = asked === "" ? -1 : indexOfLines(prompt, asked);
  if (at < 0) return [...textParts(prompt), ...attachments.filter(({ type }) => type !== "text")];
  return [
    ...textParts(prompt.slice(0, at)),
    ...attachments.filter((part) => part.type !== "text" || part.text !== ""),
    ...textParts(prompt.slice(at + asked.length)),
  ];
}

function textParts(text: string): readonly UserPart[] {
  return text === "" ? [] : [{ type: "text", text }];
}

/** Returns the index at which `lines` occur as whole lines of a text, or -1. */
function indexOfLines(text: string, lines: string): number {
  return text === lines ? 0 : `\n${text}\n`.indexOf(`\n${lines}\n`);
}

/**
 * Throws for an input with which a caller must not start a run: one without content, and one whose history or
 * instructions would be ignored, because only a parent agent may give them.
 */
export function checkRootInput(
  name: string,
  { prompt, attachments, ...read }: ReadInput,
  { name: architecture, supportsContinue = false }: Architecture,
): void {
  if (read.message === undefined && !supportsContinue)
    throw new Fault(
      "unsupported",
      `agent ${name} cannot continue a session without a message, because its architecture ${architecture} needs one; use invoke() with a message`,
    );
  if (read.message !== undefined && isEmptyInput({ prompt, attachments }))
    throw new Fault(
      "invalid_argument",
      `invalid input of agent ${name}: it is empty; pass a text, an image or a file`,
    );
  for (const key of ["history", "instructions"] as const)
    if (read[key] !== undefined)
      throw new Fault(
        "invalid_argument",
        `invalid input of agent ${name}: ${key} is accepted only from a parent agent; ${rootAlternatives[key]}`,
      );
}

/** Throws if a conversation is continued in which the model has nothing to answer. */
export function checkContinuation({ agentId, facts: { sessionId } }: RunContext, { history }: Turn): void {
  const last = beforeInterruption(history).at(-1);
  if (last?.role === "user" || last?.role === "tool") return;
  const problem = last === undefined ? "has no messages" : "ends with an answer";
  throw new Fault(
    "invalid_argument",
    `agent ${agentId} cannot continue session ${sessionId}: it ${problem}; use invoke() with a message`,
  );
}

const rootAlternatives = {
  history: "continue a conversation with the option `sessionId`, or set the agent's option `history`",
  instructions: "set the agent's option `instructions`",
};

function isParts(value: unknown): value is readonly UserPart[] {
  return Array.isArray(value) && value.length > 0 && value.every(isUserPart);
}

function isHistory(value: unknown): value is NonNullable<WorkerBrief["history"]> {
  return (
    Array.isArray(value) &&
    value.every((message) => isRecord(message) && isText(message["role"]) && message["content"] !== undefined)
  );
}

function isAbsentOr<Value>(
  is: (value: unknown) => value is Value,
  value: unknown,
): value is Value | undefined {
  return value === undefined || is(value);
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
