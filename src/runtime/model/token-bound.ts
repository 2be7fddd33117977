import { Buffer } from "node:buffer";
import {
  boundDocuments,
  boundImage,
  isTextDocument,
  systemMessage,
  type ChatMessage,
  type ContentPart,
  type LlmRequest,
  type Model,
  type ModelRequest,
  type ToolOutput,
  type ToolSpec,
  type Transcript,
} from "../../kernel/index.ts";

/** An earlier request of the same role, and the input tokens that the provider counted for it. */
export interface SentPrefix {
  readonly request: LlmRequest;
  readonly tokens: number;
  /** The model that counted. The count holds for no other model. */
  readonly by: Pick<Model, "provider" | "modelId">;
}

/**
 * Upper bound of the tokens that a provider adds per message, part or request, for example for roles and separators.
 */
const overhead = 16;
/** Upper bound of the tokens of the instructions on tool use that a provider adds if a request has tools. */
const toolsOverhead = 640;
/** Upper bound of the tokens of the instructions that a provider adds to a JSON schema for the response. */
const formatOverhead = 512;

/**
 * B1: the provider's own count for the messages that it has counted before, and one token per byte for the others.
 * `ephemeral` are messages after those of the request.
 */
export function boundInput(
  request: LlmRequest,
  sent: SentPrefix | undefined,
  model: Model,
  ephemeral: readonly ChatMessage[] = [],
): number {
  const { transcript, instructions = "", tools = [] } = request;
  const extra = boundFormat(request) + boundMessages(ephemeral, model);
  if (sent !== undefined && isSameModel(sent.by, model) && continues(request, sent)) {
    const { length } = sent.request.transcript;
    return withinWindow(sent.tokens + boundMessages(transcript, model, length) + extra, model);
  }
  const prompt = boundMessages([systemMessage(instructions)], model) + boundTools(tools);
  return withinWindow(prompt + boundMessages(transcript, model) + extra, model);
}

/** Like `boundInput`, for a request that middleware has changed: no count of the provider is known for it. */
export function boundRequest({ messages, tools = [], ...request }: ModelRequest, model: Model): number {
  return withinWindow(boundMessages(messages, model) + boundTools(tools) + boundFormat(request), model);
}

/** A request with a document that its bytes do not bound has the bound of the context window. */
function withinWindow(tokens: number, { modelId, contextWindow }: Model): number {
  return tokens === Infinity ? boundDocuments(modelId, contextWindow) : tokens;
}

function isSameModel(one: Pick<Model, "provider" | "modelId">, other: Model): boolean {
  return one.provider === other.provider && one.modelId === other.modelId;
}

/**
 * Whether `request` starts with everything that was sent before, so that the count still holds. A count of 0 is no
 * count.
 */
function continues(request: LlmRequest, { request: before, tokens }: SentPrefix): boolean {
  const { length } = before.transcript;
  return (
    tokens > 0 &&
    length > 0 &&
    length <= request.transcript.length &&
    request.transcript.at(0) === before.transcript.at(0) &&
    request.transcript.at(length - 1) === before.transcript.at(length - 1) &&
    (request.instructions ?? "") === (before.instructions ?? "") &&
    (request.tools === before.tools || boundTools(request.tools ?? []) <= boundTools(before.tools ?? []))
  );
}

/** Estimate of the tokens of messages: one per byte of text and documents, and a fixed number for each image. */
export function estimateMessages(messages: Messages): number {
  return boundMessages(messages, undefined);
}

/**
 * B1: upper bound of the tokens of the messages from index `from`: one per byte of text, and a fixed bound for each
 * image. `Infinity` for a document that its bytes do not bound. Without a model, such a document counts as its bytes.
 */
function boundMessages(messages: Messages, model: Model | undefined, from = 0): number {
  let tokens = 0;
  for (let index = from; index < messages.length; index++) {
    const message = messages.at(index);
    if (message !== undefined) tokens += boundMessage(message, model);
  }
  return tokens;
}

type Messages = Transcript | readonly ChatMessage[];

function boundMessage(message: ChatMessage, model: Model | undefined): number {
  if (message.role === "system") return bytes(message.content) + overhead;
  const parts: readonly ContentPart[] = message.content;
  let tokens = overhead;
  for (let index = 0; index < parts.length; index++) tokens += boundPart(parts[index] as ContentPart, model);
  return tokens;
}

/** The bounds of frozen tool lists: an agent sends one list for as long as its tools are equal. */
const toolBounds = new WeakMap<readonly ToolSpec[], number>();

/** B1: upper bound of the tokens of the tool list. */
function boundTools(tools: readonly ToolSpec[]): number {
  if (tools.length === 0) return 0;
  const known = toolBounds.get(tools);
  if (known !== undefined) return known;
  const bound = bytes(JSON.stringify(tools)) + toolsOverhead;
  if (isFrozenTree(tools)) toolBounds.set(tools, bound);
  return bound;
}

function isFrozenTree(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return true;
  return Object.isFrozen(value) && Object.values(value).every(isFrozenTree);
}

/** B1: upper bound of the tokens of the response format, with the instructions that surround a schema. */
function boundFormat({ responseFormat }: Pick<ModelRequest, "responseFormat">): number {
  return responseFormat?.type === "json" ? bytes(JSON.stringify(responseFormat)) + formatOverhead : 0;
}

function boundPart(part: ContentPart, model: Model | undefined): number {
  switch (part.type) {
    case "text":
    case "reasoning":
      return bytes(part.text) + overhead;
    case "image":
      return boundImage(model?.modelId ?? "");
    case "file":
      return boundFile(part, model);
    case "tool_call":
      return bytes(JSON.stringify(part.input)) + bytes(part.toolName) + overhead;
    case "opaque":
      return bytes(JSON.stringify(part.value)) + overhead;
    case "tool_result":
      return boundOutput(part.output, model) + overhead;
  }
}

function boundFile(
  { mediaType, source }: Extract<ContentPart, { type: "file" }>,
  model: Model | undefined,
): number {
  const isBounded = model === undefined || isTextDocument(mediaType);
  if (source.kind === "base64") return isBounded ? source.data.length : Infinity;
  return model === undefined ? boundImage("") : Infinity;
}

function boundOutput(output: ToolOutput, model: Model | undefined): number {
  if (output.type === "text") return bytes(output.text);
  if (output.type === "json") return bytes(JSON.stringify(output.value));
  return output.parts.reduce((sum, part) => sum + boundPart(part, model), 0);
}

/** `Buffer` is imported, because the global `Buffer` is a getter and costs a lookup per call. */
function bytes(text: string): number {
  return Buffer.byteLength(text);
}
