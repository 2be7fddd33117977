import {
  assistantMessage,
  describeValue,
  findUnpaired,
  readProperty,
  toolMessage,
  userMessage,
  type AssistantMessage,
  type AssistantPart,
  type ChatMessage,
  type ToolMessage,
  type ToolResultPart,
  type UserMessage,
  type UserPart,
} from "../../kernel/index.ts";
import { foreignParts, partForms } from "./foreign-parts.ts";

/** A message of a conversation with which a call starts. A text as content stands for one text part. */
export type InputMessage =
  | (Omit<UserMessage, "content"> & { readonly content: string | readonly UserPart[] })
  | (Omit<AssistantMessage, "content"> & { readonly content: string | readonly AssistantPart[] })
  | ToolMessage;

/** A conversation as it was passed, split at its last message. */
export interface InputConversation {
  /** The messages before the last one. */
  readonly earlier: readonly ChatMessage[];
  /** The last message, which the agent answers. */
  readonly last: UserMessage;
}

/** Whether an input is probably meant as a list of messages, because its first element has a role. */
export function isConversation(input: unknown): input is readonly unknown[] {
  return Array.isArray(input) && typeof readProperty(input[0], "role") === "string";
}

/** Reads a list of messages. Returns a description of the problem if the agent cannot answer it. */
export function readConversation(input: readonly unknown[]): InputConversation | string {
  const messages: ChatMessage[] = [];
  for (const [index, each] of input.entries()) {
    const message = readMessage(each);
    if (typeof message === "string") return `message ${index} ${message}`;
    messages.push(message);
  }
  const last = messages.at(-1);
  if (last?.role !== "user") return `the last message has the role ${last?.role}; end with a user message`;
  const unpaired = findUnpaired(messages);
  return unpaired ?? { earlier: messages.slice(0, -1), last };
}

/** The parts that the content of each role may have, with the fields that are texts. */
const partsOf: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  user: { text: ["text"], image: ["mediaType"], file: ["mediaType"] },
  assistant: {
    text: ["text"],
    file: ["mediaType"],
    reasoning: ["text"],
    tool_call: ["callId", "toolName"],
    opaque: ["provider"],
  },
  tool: { tool_result: ["callId", "toolName"] },
};

/** Reads a user message. Returns a description of the problem if the message is not one. */
export function readUserMessage(message: unknown): UserMessage | string {
  const read = readMessage(message);
  if (typeof read === "string" || read.role === "user") return read;
  return `has the role ${read.role}; expected user`;
}

function readMessage(message: unknown): ChatMessage | string {
  const role = readProperty(message, "role");
  const content = readProperty(message, "content");
  if (role === "system") return "has the role system; set the agent's option `instructions`";
  const parts = typeof role === "string" ? partsOf[role] : undefined;
  if (parts === undefined) return `has the role ${describeValue(role)}; expected user, assistant or tool`;
  if (typeof content !== "string" || role === "tool") {
    if (content === undefined && Array.isArray(readProperty(message, "parts")))
      return "has `parts` and no content; name the list `content`";
    if (!Array.isArray(content) || content.length === 0)
      return `has the content ${Array.isArray(content) ? "[]" : describeValue(content)}; expected ${role === "tool" ? "" : "a text or "}a list of parts`;
    for (const [index, part] of content.entries()) {
      const problem = problemOf(part, parts);
      if (problem !== undefined) return `has an invalid part ${index}: ${problem}`;
    }
  }
  return withMetadata(message, created(role as "user", content));
}

function problemOf(part: unknown, parts: Readonly<Record<string, readonly string[]>>): string | undefined {
  const type = readProperty(part, "type");
  const fields = typeof type === "string" && Object.hasOwn(parts, type) ? parts[type] : undefined;
  if (fields === undefined)
    return `its type is ${describeValue(type)}; expected one of ${Object.keys(parts).join(", ")}${insteadOf(type)}`;
  const missing = fields.find((field) => typeof readProperty(part, field) !== "string");
  if (missing !== undefined)
    return `${missing} of { type: ${JSON.stringify(type)} } is ${describeValue(readProperty(part, missing))}; expected a text${formOf(type)}`;
  if (type === "image" || type === "file") return sourceProblem(readProperty(part, "source"));
  if (type === "tool_call" && readProperty(part, "input") === undefined) return "input is missing";
  return type === "tool_result" ? resultProblem(part) : undefined;
}

/** Returns what to use in place of a part of another API. Empty if this is unknown. */
function insteadOf(type: unknown): string {
  const part = typeof type === "string" && Object.hasOwn(foreignParts, type) ? foreignParts[type] : undefined;
  return part === undefined ? "" : `; use ${part}`;
}

/** Returns the form of a part that an input may contain. Empty for other parts. */
function formOf(type: unknown): string {
  const form = typeof type === "string" && Object.hasOwn(partForms, type) ? partForms[type] : undefined;
  return form === undefined ? "" : `; use ${form}`;
}

function sourceProblem(source: unknown): string | undefined {
  const field = { base64: "data", url: "url" }[String(readProperty(source, "kind"))];
  if (field !== undefined && typeof readProperty(source, field) === "string") return undefined;
  return `source is ${describeValue(source)}; expected { kind: "base64", data } or { kind: "url", url }`;
}

function resultProblem(part: unknown): string | undefined {
  const output = readProperty(part, "output");
  const field = { text: "text", json: "value", content: "parts" }[String(readProperty(output, "type"))];
  if (field === undefined || readProperty(output, field) === undefined)
    return `output is ${describeValue(output)}; expected { type: "text", text }, { type: "json", value } or { type: "content", parts }`;
  return typeof readProperty(part, "isError") === "boolean"
    ? undefined
    : "isError is missing; use true or false";
}

/** Creates a message whose role and content were checked. */
function created(role: "user" | "assistant" | "tool", content: unknown): ChatMessage {
  if (role === "user") return userMessage(content as string | readonly UserPart[]);
  if (role === "assistant") return assistantMessage(content as string | readonly AssistantPart[]);
  return toolMessage(content as readonly ToolResultPart[]);
}

function withMetadata(from: unknown, message: ChatMessage): ChatMessage {
  const providerMetadata = readProperty(from, "providerMetadata");
  if (providerMetadata === undefined) return message;
  return { ...message, providerMetadata: providerMetadata as NonNullable<ChatMessage["providerMetadata"]> };
}
