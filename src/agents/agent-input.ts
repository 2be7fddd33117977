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

/** What an agent is asked: words, words with images and files, or a request that says what the answer is to be. */
export type AgentInput = string | readonly UserPart[] | AgentRequest;

export interface AgentRequest {
  readonly prompt: string | readonly UserPart[];
  /** The answer is to be JSON that fits. */
  readonly output?: JsonSchema;
}

/** An input as it is used. */
export interface ReadInput {
  readonly prompt: string;
  readonly attachments: readonly UserPart[];
  readonly message: UserMessage;
  readonly output?: JsonSchema;
  /** Of a worker's brief only. */
  readonly instructions?: string;
  readonly history?: WorkerBrief["history"];
}

/** `undefined`: an agent cannot be asked this. */
export function readInput(input: JsonValue): ReadInput | undefined {
  if (typeof input === "string") return ofParts(input);
  if (isParts(input)) return ofParts(input);
  if (typeof input !== "object" || input === null) return undefined;
  const { prompt, output, instructions, history } = input as Partial<AgentRequest & WorkerBrief>;
  const read = typeof prompt === "string" || isParts(prompt) ? ofParts(prompt) : undefined;
  return (
    read && {
      ...read,
      ...(output && { output }),
      ...(instructions && { instructions }),
      ...(history && { history }),
    }
  );
}

/** What an agent is asked in a message of another is shown as JSON where it is no input. */
export function readMessage(body: JsonValue): ReadInput {
  return readInput(body) ?? ofParts(JSON.stringify(body));
}

export function refusedInput(name: string): Fault {
  return new Fault(
    "invalid_argument",
    `agent ${name} takes a text as its input, a list of text, image and file parts, or { prompt, output } with one of these as the prompt`,
  );
}

function ofParts(content: string | readonly UserPart[]): ReadInput {
  if (typeof content === "string") return { prompt: content, attachments: [], message: userMessage(content) };
  const words = textOf(content);
  const attachments = content.filter(({ type }) => type !== "text");
  return { prompt: words, attachments, message: opening(words, attachments) };
}

/** The first message of an invocation. */
export function opening(prompt: string, attachments: readonly UserPart[]): UserMessage {
  return attachments.length === 0
    ? userMessage(prompt)
    : userMessage([{ type: "text", text: prompt }, ...attachments]);
}

function isParts(value: unknown): value is readonly UserPart[] {
  return Array.isArray(value) && value.length > 0 && value.every(isPart);
}

function isPart(part: unknown): boolean {
  const type: unknown = typeof part === "object" && part !== null ? Reflect.get(part, "type") : undefined;
  return type === "text" || type === "image" || type === "file";
}
