import {
  Fault,
  textOf,
  userMessage,
  type JsonSchema,
  type JsonValue,
  type UserMessage,
  type UserPart,
  type WorkerBrief,
} from "../kernel/index.ts";

/** The input of an agent: a text, a text with images and files, or a request that also describes the answer. */
export type AgentInput = string | readonly UserPart[] | AgentRequest;

export interface AgentRequest {
  readonly prompt: string | readonly UserPart[];
  /** A JSON Schema that the answer must match. */
  readonly output?: JsonSchema;
}

/** An input in the form in which an invocation uses it. */
export interface ReadInput {
  readonly prompt: string;
  readonly attachments: readonly UserPart[];
  readonly message: UserMessage;
  readonly output?: JsonSchema;
  /** Instructions for this invocation. Only the parent of a worker can give them. */
  readonly instructions?: string;
  readonly history?: WorkerBrief["history"];
}

/** Reads an input. Returns `undefined` if it is not a valid input of an agent. */
export function readInput(input: JsonValue): ReadInput | undefined {
  if (typeof input === "string") return ofParts(input);
  if (isParts(input)) return ofParts(input);
  if (typeof input !== "object" || input === null) return undefined;
  const { prompt, output, instructions, history } = input as Readonly<Record<string, unknown>>;
  const read = typeof prompt === "string" || isParts(prompt) ? ofParts(prompt) : undefined;
  const fits =
    isAbsentOr(isRecord, output) && isAbsentOr(isText, instructions) && isAbsentOr(isHistory, history);
  if (read === undefined || !fits) return undefined;
  return {
    ...read,
    ...(output && { output: output as JsonSchema }),
    ...(instructions && { instructions }),
    ...(history && { history }),
  };
}

/** Reads the message of another agent. A body that is not an input is converted to JSON text. */
export function readMessage(body: JsonValue): ReadInput {
  return readInput(body) ?? ofParts(JSON.stringify(body));
}

export function refusedInput(name: string): Fault {
  return new Fault(
    "invalid_argument",
    `invalid input of agent ${name}: expected a text, a list of text, image and file parts, or { prompt, output } with one of these as the prompt`,
  );
}

function ofParts(content: string | readonly UserPart[]): ReadInput {
  if (typeof content === "string") return { prompt: content, attachments: [], message: userMessage(content) };
  const words = textOf(content);
  const attachments = content.filter(({ type }) => type !== "text");
  return { prompt: words, attachments, message: opening(words, attachments) };
}

/** The first message of an invocation. An empty text is left out, because providers refuse it. */
export function opening(prompt: string, attachments: readonly UserPart[]): UserMessage {
  if (attachments.length === 0) return userMessage(prompt);
  return userMessage([...(prompt === "" ? [] : [{ type: "text", text: prompt } as const]), ...attachments]);
}

function isParts(value: unknown): value is readonly UserPart[] {
  return Array.isArray(value) && value.length > 0 && value.every(isPart);
}

function isPart(part: unknown): boolean {
  if (!isRecord(part)) return false;
  const { type, text, mediaType, source } = part;
  if (type === "text") return isText(text);
  return (type === "image" || type === "file") && isText(mediaType) && isSource(source);
}

function isSource(source: unknown): boolean {
  if (!isRecord(source)) return false;
  const { kind, data, url } = source;
  return (kind === "base64" && isText(data)) || (kind === "url" && isText(url));
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
