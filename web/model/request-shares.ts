import type {
  ChatMessage,
  ContentPart,
  Recorded,
  RecordedRequest,
  ToolSpec,
  Usage,
} from "../../src/kernel/index.ts";
import { plain } from "../base/format.ts";
import { outputText } from "./thread.ts";

/** A request with the usage of its answer. An answer that was cut has usage, and is no reply of the request. */
export interface SizedRequest extends RecordedRequest {
  /** `null` if the call has no answer. */
  readonly usage: Usage | null;
}

export function sized(request: RecordedRequest, usage: Usage | null): SizedRequest {
  return { ...request, usage: request.reply?.usage ?? usage };
}

/** A part of what a model read, with its size in tokens. */
export interface RequestShare {
  readonly key: "instructions" | "tools" | "messages" | "results";
  readonly name: string;
  readonly tokens: number;
}

/** Providers count about one token for so many characters of English text. */
const charactersPerToken = 4;

/** Number of tokens of a text, estimated from its length. */
function tokensOf(text: string): number {
  return Math.ceil(text.length / charactersPerToken);
}

/**
 * Returns a function that counts the tokens of a part of a request. Providers report only the sum, so a part is estimated
 * from the length of its text, and scaled to the sum if it is known.
 */
export function counterOf(request: SizedRequest): (text: string) => number {
  const reported = request.usage?.inputTokens;
  const estimated = textsOf(request).reduce((total, { tokens }) => total + tokens, 0);
  const scale = reported === undefined || estimated === 0 ? 1 : reported / estimated;
  return (text) => Math.round(tokensOf(text) * scale);
}

/** The value of a part of a request, or `none` if it cannot be shown. */
export function valueOf<Value>(part: Recorded<Value>, none: Value): Value {
  return part.state === "recorded" ? part.value : none;
}

export const noMessages: readonly ChatMessage[] = [];
const noTools: readonly ToolSpec[] = [];

/** The parts of a request with the tokens that their texts have. */
function textsOf(request: RecordedRequest): readonly RequestShare[] {
  const messages = valueOf(request.messages, noMessages);
  const results = messages.filter(({ role }) => role === "tool");
  const others = messages.filter(({ role }) => role !== "tool");
  const sum = (list: readonly ChatMessage[]): number =>
    list.reduce((total, message) => total + tokensOf(fullText(message)), 0);
  const { instructions, tools } = request;
  return [
    { key: "instructions", name: "Instructions", tokens: tokensOf(valueOf(instructions, "")) },
    { key: "tools", name: "Tools", tokens: tokensOf(toolsText(valueOf(tools, noTools))) },
    { key: "messages", name: "Messages", tokens: sum(others) },
    { key: "results", name: "Tool results", tokens: sum(results) },
  ];
}

/** Tools as a provider is sent them. No tools have no text. */
function toolsText(tools: readonly ToolSpec[]): string {
  return tools.length === 0 ? "" : JSON.stringify(tools);
}

/** Splits the input tokens of a call by what they were. The parts add up to the sum that the provider reports. */
export function sharesOfRequest(request: SizedRequest): readonly RequestShare[] {
  const shares = textsOf(request);
  const reported = request.usage?.inputTokens;
  const estimated = shares.reduce((total, { tokens }) => total + tokens, 0);
  if (reported === undefined || estimated === 0) return shares;
  let [texts, counted] = [0, 0];
  return shares.map((share) => {
    texts += share.tokens;
    const before = counted;
    counted = Math.round((texts * reported) / estimated);
    return { ...share, tokens: counted - before };
  });
}

/** All that a message contains, as text. */
export function fullText(message: ChatMessage): string {
  const { content } = message;
  return typeof content === "string" ? content : content.map(partText).join("\n");
}

/** A part of a message as text. Files are named, because their bytes say nothing to a reader. */
export function partText(part: ContentPart): string {
  switch (part.type) {
    case "text":
    case "reasoning":
      return part.text;
    case "tool_call":
      return `${part.toolName} ${plain(part.input)}`;
    case "tool_result":
      return outputText(part.output);
    default:
      return `(${part.type})`;
  }
}
