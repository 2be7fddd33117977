import { Buffer } from "node:buffer";
import type {
  ChatMessage,
  ContentPart,
  ModelRequest,
  ToolOutput,
  ToolSpec,
  Transcript,
} from "../../kernel/index.ts";

/** More than any provider counts for one image, whatever its size. */
const tokensPerImage = 8_192;
/** For roles, separators and the like, for each message and the request. */
const overhead = 16;
/** Providers tell their models how to use tools, at the user's cost. */
const toolsOverhead = 640;
const formatOverhead = 512;

/** B1: at least as many tokens as these messages can come to: one per byte of text, and a bound for each image. */
export function boundMessages(messages: Messages, from = 0): number {
  let tokens = 0;
  for (let index = from; index < messages.length; index++) {
    const message = messages.at(index);
    if (message !== undefined) tokens += boundMessage(message);
  }
  return tokens;
}

type Messages = Transcript | readonly ChatMessage[];

function boundMessage(message: ChatMessage): number {
  if (message.role === "system") return bytes(message.content) + overhead;
  const parts: readonly ContentPart[] = message.content;
  let tokens = overhead;
  for (let index = 0; index < parts.length; index++) tokens += boundPart(parts[index] as ContentPart);
  return tokens;
}

export function boundTools(tools: readonly ToolSpec[]): number {
  return tools.length === 0 ? 0 : bytes(JSON.stringify(tools)) + toolsOverhead;
}

/** A schema goes out with some words around it, whether the provider has a place for it or it is told to the model. */
export function boundFormat({ responseFormat }: Pick<ModelRequest, "responseFormat">): number {
  return responseFormat?.type === "json" ? bytes(JSON.stringify(responseFormat)) + formatOverhead : 0;
}

function boundPart(part: ContentPart): number {
  switch (part.type) {
    case "text":
    case "reasoning":
      return bytes(part.text) + overhead;
    case "image":
      return tokensPerImage;
    case "file":
      return part.source.kind === "base64" ? part.source.data.length : tokensPerImage;
    case "tool_call":
      return bytes(JSON.stringify(part.input)) + bytes(part.toolName) + overhead;
    case "opaque":
      return bytes(JSON.stringify(part.value)) + overhead;
    case "tool_result":
      return boundOutput(part.output) + overhead;
  }
}

function boundOutput(output: ToolOutput): number {
  if (output.type === "text") return bytes(output.text);
  if (output.type === "json") return bytes(JSON.stringify(output.value));
  return output.parts.reduce((sum, part) => sum + boundPart(part), 0);
}

/** `Buffer` by its module: the global of that name is looked up at every call. */
function bytes(text: string): number {
  return Buffer.byteLength(text);
}
