import {
  visibleText,
  type ChatMessage,
  type Recorded,
  type RecordedRequest,
  type ToolSpec,
} from "../../src/kernel/index.ts";
import { isHandOff, targetOf } from "../../src/surfaces/view/task-words.ts";
import { counterOf, fullText, noMessages, valueOf, type SizedRequest } from "./request-shares.ts";

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

/** The parts of one call's request that were not in the request of the call before. */
export interface RequestChanges {
  readonly lines: readonly { readonly words: string; readonly tokens: number | null }[];
  /** Position of the first message that the call before did not have. */
  readonly firstNew: number;
}

export function changesSince(before: RecordedRequest, request: SizedRequest): RequestChanges {
  const count = counterOf(request);
  const [old, now] = [valueOf(before.messages, noMessages), valueOf(request.messages, noMessages)];
  const texts = old.map((message) => JSON.stringify(message));
  let firstNew = 0;
  while (firstNew < old.length && firstNew < now.length && texts[firstNew] === JSON.stringify(now[firstNew]))
    firstNew++;
  const lines = now.slice(firstNew).map((message) => ({
    words: changeWords(message),
    tokens: count(fullText(message)),
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
  return `results of ${[...new Set(names)].map((name) => visibleText(sourceOf(name))).join(", ")}`;
}

/** Who gave a result: the tool, or the agent that was hired. */
function sourceOf(tool: string): string {
  return isHandOff(tool) ? targetOf(tool, null) : tool;
}

/** Returns the request as one JSON text, with all known data. */
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
