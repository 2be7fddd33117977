import {
  visibleText,
  type ChatMessage,
  type ContentPart,
  type Recorded,
  type RecordedRequest,
  type ToolSpec,
} from "../../src/kernel/index.ts";
import { plain } from "../base/format.ts";
import { outputText } from "./thread.ts";

/** A part of what a model read, with its size in tokens. */
export interface RequestShare {
  readonly key: "instructions" | "tools" | "messages" | "results";
  readonly name: string;
  readonly tokens: number;
}

/** Providers count about one token for so many characters of English text. */
const charactersPerToken = 4;

/** Number of tokens of a text, estimated from its length. */
export function tokensOf(text: string): number {
  return Math.ceil(text.length / charactersPerToken);
}

function valueOf<Value>(part: Recorded<Value>, none: Value): Value {
  return part.state === "recorded" ? part.value : none;
}

const noMessages: readonly ChatMessage[] = [];
const noTools: readonly ToolSpec[] = [];

/**
 * Splits the input tokens of a call by what they were. Providers report only the sum, so the parts are estimated from the
 * lengths of their texts, and scaled to the sum if it is known.
 */
export function sharesOfRequest(request: RecordedRequest): readonly RequestShare[] {
  const messages = valueOf(request.messages, noMessages);
  const results = messages.filter(({ role }) => role === "tool");
  const others = messages.filter(({ role }) => role !== "tool");
  const sum = (list: readonly ChatMessage[]): number =>
    list.reduce((total, message) => total + tokensOf(fullText(message)), 0);
  const shares: RequestShare[] = [
    {
      key: "instructions",
      name: "Instructions",
      tokens: tokensOf(valueOf(request.instructions, "")),
    },
    { key: "tools", name: "Tools", tokens: tokensOf(JSON.stringify(valueOf(request.tools, noTools))) },
    { key: "messages", name: "Messages", tokens: sum(others) },
    { key: "results", name: "Tool results", tokens: sum(results) },
  ];
  const reported = request.reply?.usage.inputTokens;
  const estimated = shares.reduce((total, { tokens }) => total + tokens, 0);
  if (reported === undefined || estimated === 0) return shares;
  return shares.map((share) => ({ ...share, tokens: Math.round((share.tokens * reported) / estimated) }));
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

/** The names of the arguments of a tool, with a question mark for those that may be absent. */
export function argumentNames({ inputSchema }: ToolSpec): string {
  const { properties, required } = inputSchema as {
    readonly properties?: unknown;
    readonly required?: unknown;
  };
  if (typeof properties !== "object" || properties === null) return "";
  const needed = new Set(Array.isArray(required) ? (required as readonly unknown[]) : []);
  return Object.keys(properties)
    .map((name) => (needed.has(name) ? name : `${name}?`))
    .join(", ");
}

/** What one call was sent that the call before it was not. */
export interface RequestChanges {
  readonly lines: readonly { readonly words: string; readonly tokens: number | null }[];
  /** Position of the first message that the call before did not have. */
  readonly firstNew: number;
}

export function changesSince(before: RecordedRequest, request: RecordedRequest): RequestChanges {
  const [old, now] = [valueOf(before.messages, noMessages), valueOf(request.messages, noMessages)];
  const texts = old.map((message) => JSON.stringify(message));
  let firstNew = 0;
  while (firstNew < old.length && firstNew < now.length && texts[firstNew] === JSON.stringify(now[firstNew]))
    firstNew++;
  const lines = now.slice(firstNew).map((message) => ({
    words: changeWords(message),
    tokens: tokensOf(fullText(message)),
  }));
  const removed = old.length - firstNew;
  const parts = [
    before.instructionsHash === request.instructionsHash ? null : "other instructions",
    before.toolsHash === request.toolsHash ? null : "other tools",
    JSON.stringify(before.settings) === JSON.stringify(request.settings) ? null : "other settings",
    removed === 0 ? null : `without ${removed} earlier ${removed === 1 ? "message" : "messages"}`,
  ];
  const others = parts.flatMap((words) => (words === null ? [] : [{ words, tokens: null }]));
  return { lines: [...others, ...lines], firstNew };
}

function changeWords(message: ChatMessage): string {
  const { role, content } = message;
  if (role === "assistant") return "its own answer";
  if (role === "user") return "a message";
  if (typeof content === "string") return role;
  const names = content.flatMap((part) => (part.type === "tool_result" ? [part.toolName] : []));
  return `results of ${[...new Set(names)].map((name) => visibleText(name)).join(", ")}`;
}

/** The request as one JSON text, with what is known of it. */
export function rawRequest(request: RecordedRequest): string {
  const { model, role, instructions, tools, messages, settings } = request;
  const raw = {
    model,
    role,
    settings,
    instructions: rawPart(instructions),
    tools: rawPart(tools),
    messages: rawPart(messages),
  };
  return JSON.stringify(raw, null, 2);
}

function rawPart<Value>(part: Recorded<Value>): Value | { readonly notShown: string } {
  return part.state === "recorded" ? part.value : { notShown: part.state };
}
