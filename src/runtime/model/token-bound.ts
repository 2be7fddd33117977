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

/** An earlier request of the same role, with the input tokens that the provider counted for it. */
export interface SentPrefix {
  readonly request: LlmRequest;
  readonly tokens: number;
  /** The model that counted. The count is valid only for this model. */
  readonly by: Pick<Model, "provider" | "modelId">;
}

/**
 * Upper bound of the tokens that a provider adds for each message, part or request, for example for roles and
 * separators.
 */
const overhead = 16;
/** Upper bound of the tokens of the instructions on tool use that a provider adds if a request has tools. */
const toolsOverhead = 640;
/** Upper bound of the tokens of the instructions that a provider adds to a JSON schema for the response. */
const formatOverhead = 512;

/**
 * B1: returns an upper bound of the input tokens. For messages that the provider has counted before, it uses this
 * count, and for the others one token per byte. `ephemeral` are messages after those of the request.
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

/**
 * Returns an upper bound of the input tokens like `boundInput`, for a request that middleware has changed and for
 * which no count of the provider is known.
 */
export function boundRequest({ messages, tools = [], ...request }: ModelRequest, model: Model): number {
  return withinWindow(boundMessages(messages, model) + boundTools(tools) + boundFormat(request), model);
}

/** Returns the tokens, or the size of the context window if the request has a document whose bytes give no bound. */
function withinWindow(tokens: number, { modelId, contextWindow }: Model): number {
  return tokens === Infinity ? boundDocuments(modelId, contextWindow) : tokens;
}

function isSameModel(one: Pick<Model, "provider" | "modelId">, other: Model): boolean {
  return one.provider === other.provider && one.modelId === other.modelId;
}

/**
 * Whether `request` starts with all messages of the earlier request, so that its count is still valid. A count of 0
 * is not used.
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

/** Estimates the tokens of messages: one per byte of text and documents, and a fixed number for each image. */
export function estimateMessages(messages: Messages): number {
  return boundMessages(messages, undefined);
}

/**
 * B1: returns an upper bound of the tokens of the messages from index `from`: one per byte of text, and a fixed
 * bound for each image. `Infinity` for a document whose bytes give no bound; without a model, the bytes of such a
 * document are counted.
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

/**
 * The token bounds of frozen tool lists. They are cached, because an agent sends the same list as long as its tools
 * do not change.
 */
const toolBounds = new WeakMap<readonly ToolSpec[], number>();

/** B1: returns an upper bound of the tokens of the tool list. */
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

/** B1: returns an upper bound of the tokens of the response format, with the instructions that surround a schema. */
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

/**
 * Returns the number of bytes of a text. `Buffer` is imported, because the global `Buffer` is a getter and costs a
 * lookup per call.
 */
function bytes(text: string): number {
  return Buffer.byteLength(text);
}
