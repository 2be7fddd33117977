import type { Fault, JsonObject, JsonValue, UserPart } from "../../../kernel/index.ts";
import type { CallOutput, GivenOutputs } from "./client-calls.ts";
import { ClientHistory, inputOf } from "./openai-history.ts";
import { invalidParameter, isObject, type OpenAiMessage } from "./openai-parameters.ts";

/** A conversation that a request contains. */
export interface OpenAiConversation {
  /** The input of the agent: a text, parts, or messages of which the last one is from the user. */
  readonly input: JsonValue;
  /** The texts of the system and developer messages. `undefined` if the request has none. */
  readonly addedInstructions?: string;
}

/** Reads all messages of a request, which are the whole conversation. */
export function readConversation(messages: readonly OpenAiMessage[]): OpenAiConversation {
  const instructions: string[] = [];
  const history = new ClientHistory();
  for (const [index, message] of messages.entries()) {
    const place = `messages[${index}]`;
    checkFields(message, place);
    if (message.role === "user") history.addUser(userParts(message, place));
    else if (message.role === "assistant") addAnswer(history, message, place);
    else if (message.role === "tool") {
      const { callId, value } = outputOf(message, place);
      history.addOutput(callId, value, place);
    } else instructions.push(textContent(message["content"], `${place}.content`));
  }
  const added = instructions.filter((text) => text.trim() !== "").join("\n\n");
  const input = history.toInput("messages");
  return { input, ...(added !== "" && { addedInstructions: added }) };
}

/**
 * Reads the new messages of the user in a session: those after the last message of the assistant. All older
 * messages are taken from the store, not from the client.
 */
export function readNewMessages(messages: readonly OpenAiMessage[]): JsonValue {
  const answered = messages.findLastIndex(({ role }) => role !== "user" && !isInstruction(role));
  const parts = saidAfter(messages, answered);
  if (parts.length > 0) return inputOf(parts);
  throw invalidParameter("messages", "invalid messages: none of them is a new message of the user");
}

/** The outputs and the messages of the user after the last answer. */
export function readOutputs(messages: readonly OpenAiMessage[]): GivenOutputs {
  const answered = messages.findLastIndex(({ role }) => role === "assistant");
  const outputs = messages.flatMap((message, index) => {
    const isOutput = index > answered && message.role === "tool";
    return isOutput ? [outputOf(message, `messages[${index}]`)] : [];
  });
  const said = outputs.length === 0 ? [] : saidAfter(messages, answered);
  return { outputs, said: said.length === 0 ? undefined : inputOf(said), hasAnswer: answered >= 0 };
}

function saidAfter(messages: readonly OpenAiMessage[], answered: number): readonly UserPart[] {
  return messages.flatMap((message, index) => {
    if (index <= answered || message.role !== "user") return [];
    const place = `messages[${index}]`;
    checkFields(message, place);
    return userParts(message, place);
  });
}

function isInstruction(role: OpenAiMessage["role"]): boolean {
  return role === "system" || role === "developer";
}

/** Fields that answers of this server contain or that have no meaning here, beside those that are read. */
const readFields = new Set(["role", "content", "refusal", "annotations", "tool_calls", "tool_call_id"]);

function checkFields({ role, ...fields }: OpenAiMessage, place: string): void {
  if (role === "function")
    throw invalidParameter(
      place,
      `invalid ${place}: the role function is not supported; send the output with the role tool`,
    );
  for (const [name, value] of Object.entries(fields)) {
    if (readFields.has(name) || value === null || (Array.isArray(value) && value.length === 0)) continue;
    if (name === "function_call")
      throw invalidParameter(
        `${place}.${name}`,
        `invalid ${place}.${name}: it is not supported; send the call in tool_calls`,
      );
    const advice = name === "name" ? "; write the name into the text" : "";
    throw invalidParameter(`${place}.${name}`, `unknown field ${JSON.stringify(name)} of ${place}${advice}`);
  }
}

function outputOf({ tool_call_id: callId, content }: OpenAiMessage, place: string): CallOutput {
  if (typeof callId !== "string" || callId === "")
    throw invalidParameter(
      `${place}.tool_call_id`,
      `invalid ${place}.tool_call_id: expected the id of a call`,
    );
  return { callId, value: textContent(content, `${place}.content`), place };
}

function addAnswer(history: ClientHistory, message: OpenAiMessage, place: string): void {
  const { tool_calls: calls = null } = message;
  const hasCalls = Array.isArray(calls) && calls.length > 0;
  if (!hasCalls) return history.addText(assistantText(message, place));
  if (message["content"] !== undefined && message["content"] !== null && message["content"] !== "")
    history.addText(textContent(message["content"], `${place}.content`));
  for (const [index, call] of calls.entries()) {
    const { id: callId, function: called } = isObject(call) ? call : ({} as JsonObject);
    const { name, arguments: written } = isObject(called) ? called : ({} as JsonObject);
    history.addCall({ callId, name, written }, `${place}.tool_calls[${index}]`);
  }
}

function assistantText({ content, refusal }: OpenAiMessage, place: string): string {
  const own = content === undefined || content === null ? refusal : content;
  const text = textContent(own, `${place}.content`);
  if (text !== "") return text;
  throw invalidParameter(`${place}.content`, `invalid ${place}.content: it is empty; remove the message`);
}

/** Returns the text of a message whose content must consist of text only. */
function textContent(content: JsonValue | undefined, place: string): string {
  if (typeof content === "string") return content;
  return partsOf(content, place)
    .map((part, index) => {
      const text = part["type"] === "refusal" ? part["refusal"] : part["text"];
      if ((part["type"] === "text" || part["type"] === "refusal") && typeof text === "string") return text;
      throw invalidPart(`${place}[${index}]`, part, '{ type: "text", text }');
    })
    .join("");
}

function userParts({ content }: OpenAiMessage, place: string): readonly UserPart[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return partsOf(content, `${place}.content`).map((part, index) =>
    userPart(part, `${place}.content[${index}]`),
  );
}

export function partsOf(content: JsonValue | undefined, place: string): readonly JsonObject[] {
  if (Array.isArray(content) && content.length > 0 && content.every(isObject)) return content;
  throw invalidParameter(place, `invalid ${place}: expected a text or a list of parts`);
}

function userPart(part: JsonObject, place: string): UserPart {
  const { type } = part;
  const value = typeof type === "string" ? part[type] : undefined;
  if (type === "text" && typeof part["text"] === "string") return { type: "text", text: part["text"] };
  if (type === "image_url" && isObject(value)) return imagePart(value["url"], `${place}.image_url.url`);
  if (type === "input_audio" && isObject(value)) return audioPart(value, place);
  if (type === "file" && isObject(value)) return filePart(value, `${place}.file`);
  throw invalidPart(place, part, "a part of the type text, image_url, input_audio or file");
}

const dataUrl = /^data:([\w.+-]+\/[\w.+-]+);base64,([A-Za-z0-9+/=_-]+)$/u;
const imageTypes: Readonly<Record<string, string>> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
};

export function imagePart(url: JsonValue | undefined, place: string): UserPart {
  const address = typeof url === "string" ? url : "";
  const [, mediaType = "", data = ""] = dataUrl.exec(address) ?? [];
  if (mediaType.startsWith("image/")) return { type: "image", mediaType, source: { kind: "base64", data } };
  if (!/^https?:/u.test(address) || !URL.canParse(address))
    throw invalidParameter(
      place,
      `invalid ${place}: expected an http or https address, or data:image/TYPE;base64,DATA`,
    );
  const ending = /\.(\w+)$/u.exec(new URL(address).pathname)?.[1]?.toLowerCase() ?? "";
  const type = (Object.hasOwn(imageTypes, ending) ? imageTypes[ending] : undefined) ?? "image/*";
  return { type: "image", mediaType: type, source: { kind: "url", url: address } };
}

function audioPart({ data, format }: JsonObject, place: string): UserPart {
  if (typeof data === "string" && (format === "wav" || format === "mp3"))
    return {
      type: "file",
      mediaType: format === "wav" ? "audio/wav" : "audio/mpeg",
      source: { kind: "base64", data },
    };
  throw invalidParameter(
    `${place}.input_audio`,
    `invalid ${place}.input_audio: expected { data, format } with the format wav or mp3`,
  );
}

export function filePart({ file_data: source, filename }: JsonObject, place: string): UserPart {
  const [, mediaType, data] = dataUrl.exec(typeof source === "string" ? source : "") ?? [];
  if (mediaType === undefined || data === undefined)
    throw invalidParameter(
      place,
      `invalid ${place}: expected { file_data, filename } with data:TYPE;base64,DATA; files are not stored, so file_id is not supported`,
    );
  return {
    type: "file",
    mediaType,
    source: { kind: "base64", data },
    ...(typeof filename === "string" && { filename }),
  };
}

export function invalidPart(place: string, { type }: JsonObject, expected: string): Fault {
  return invalidParameter(
    place,
    `invalid ${place} with the type ${JSON.stringify(type)}: expected ${expected}`,
  );
}
