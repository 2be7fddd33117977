import type { Fault, JsonObject, JsonValue, UserPart } from "../../../kernel/index.ts";
import { invalidParameter, isObject, type OpenAiMessage } from "./openai-parameters.ts";

/** A conversation that a request brings along. */
export interface OpenAiConversation {
  /** The input of the agent: a text, parts, or messages of which the last one is the user's. */
  readonly input: JsonValue;
  /** The texts of the system and developer messages. `undefined` if there are none. */
  readonly addedInstructions?: string;
}

/** Reads all messages of a request: they are the whole conversation. */
export function readConversation(messages: readonly OpenAiMessage[]): OpenAiConversation {
  const instructions: string[] = [];
  const said: { readonly role: "user" | "assistant"; readonly content: JsonValue }[] = [];
  for (const [index, message] of messages.entries()) {
    const place = `messages[${index}]`;
    checkFields(message, place);
    if (message.role === "user") said.push({ role: "user", content: userContent(message, place) });
    else if (message.role === "assistant")
      said.push({ role: "assistant", content: assistantText(message, place) });
    else if (message.role === "system" || message.role === "developer")
      instructions.push(textContent(message["content"], `${place}.content`));
    else throw foreignResult(place);
  }
  const last = said.at(-1);
  if (last?.role !== "user")
    throw invalidParameter("messages", "invalid messages: the last one must have the role user");
  const added = instructions.filter((text) => text.trim() !== "").join("\n\n");
  const input = said.length === 1 ? last.content : (said as unknown as JsonValue);
  return { input, ...(added !== "" && { addedInstructions: added }) };
}

/**
 * Reads the new messages of the user in a session: those after the last message of another role that answers. Everything
 * else is in the store, and what the client says about it is not used.
 */
export function readNewMessages(messages: readonly OpenAiMessage[]): JsonValue {
  const answered = messages.findLastIndex(({ role }) => role !== "user" && !isInstruction(role));
  const parts: UserPart[] = [];
  for (const [index, message] of messages.entries()) {
    if (index <= answered || message.role !== "user") continue;
    const place = `messages[${index}]`;
    checkFields(message, place);
    const content = userContent(message, place);
    if (typeof content === "string") parts.push({ type: "text", text: content });
    else parts.push(...(content as unknown as readonly UserPart[]));
  }
  const [only, ...others] = parts;
  if (only === undefined)
    throw invalidParameter("messages", "invalid messages: none of them is a new message of the user");
  return others.length === 0 && only.type === "text" ? only.text : (parts as unknown as JsonValue);
}

function isInstruction(role: OpenAiMessage["role"]): boolean {
  return role === "system" || role === "developer";
}

/** Fields that answers of this server contain or that have no meaning here, beside those that are read. */
const readFields = new Set(["role", "content", "refusal", "annotations"]);
const callFields = new Set(["tool_calls", "function_call"]);

function checkFields({ role, ...fields }: OpenAiMessage, place: string): void {
  if (role === "tool" || role === "function") throw foreignResult(place);
  for (const [name, value] of Object.entries(fields)) {
    if (readFields.has(name) || value === null || (Array.isArray(value) && value.length === 0)) continue;
    if (callFields.has(name))
      throw invalidParameter(
        `${place}.${name}`,
        `invalid ${place}: it calls a tool, but answers of this server contain no calls; remove the message`,
      );
    const advice = name === "name" ? "; write the name into the text" : "";
    throw invalidParameter(`${place}.${name}`, `unknown field ${JSON.stringify(name)} of ${place}${advice}`);
  }
}

function foreignResult(place: string): Fault {
  return invalidParameter(
    place,
    `invalid ${place}: results of tools are not accepted, because the agent calls its own tools; remove the message`,
  );
}

function assistantText({ content, refusal }: OpenAiMessage, place: string): string {
  const own = content === undefined || content === null ? refusal : content;
  const text = textContent(own, `${place}.content`);
  if (text !== "") return text;
  throw invalidParameter(`${place}.content`, `invalid ${place}.content: it is empty; remove the message`);
}

/** The text of a message whose content may have no other parts. */
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

function userContent({ content }: OpenAiMessage, place: string): JsonValue {
  if (typeof content === "string") return content;
  const parts = partsOf(content, `${place}.content`).map((part, index) =>
    userPart(part, `${place}.content[${index}]`),
  );
  return parts as unknown as JsonValue;
}

function partsOf(content: JsonValue | undefined, place: string): readonly JsonObject[] {
  if (Array.isArray(content) && content.length > 0 && content.every(isObject)) return content;
  throw invalidParameter(place, `invalid ${place}: expected a text or a list of parts`);
}

function userPart(part: JsonObject, place: string): UserPart {
  const { type } = part;
  const value = typeof type === "string" ? part[type] : undefined;
  if (type === "text" && typeof part["text"] === "string") return { type: "text", text: part["text"] };
  if (type === "image_url" && isObject(value)) return imagePart(value, place);
  if (type === "input_audio" && isObject(value)) return audioPart(value, place);
  if (type === "file" && isObject(value)) return filePart(value, place);
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

function imagePart({ url }: JsonObject, place: string): UserPart {
  const address = typeof url === "string" ? url : "";
  const [, mediaType = "", data = ""] = dataUrl.exec(address) ?? [];
  if (mediaType.startsWith("image/")) return { type: "image", mediaType, source: { kind: "base64", data } };
  if (!/^https?:/u.test(address) || !URL.canParse(address))
    throw invalidParameter(
      `${place}.image_url.url`,
      `invalid ${place}.image_url.url: expected an http or https address, or data:image/TYPE;base64,DATA`,
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

function filePart({ file_data: source, filename }: JsonObject, place: string): UserPart {
  const [, mediaType, data] = dataUrl.exec(typeof source === "string" ? source : "") ?? [];
  if (mediaType === undefined || data === undefined)
    throw invalidParameter(
      `${place}.file`,
      `invalid ${place}.file: expected { file_data, filename } with data:TYPE;base64,DATA; files are not stored, so file_id is not supported`,
    );
  return {
    type: "file",
    mediaType,
    source: { kind: "base64", data },
    ...(typeof filename === "string" && { filename }),
  };
}

function invalidPart(place: string, { type }: JsonObject, expected: string): Fault {
  return invalidParameter(
    place,
    `invalid ${place} with the type ${JSON.stringify(type)}: expected ${expected}`,
  );
}
