import { describeValue } from "../base/describe-value.ts";
import { Fault } from "../base/fault.ts";
import { assertJson } from "../base/json.ts";
import type { ChatMessage } from "../messages/chat-message.ts";
import type { ToolOutput } from "../messages/content.ts";
import { thinkingLevels } from "../messages/model.ts";
import type { SessionEntry } from "./session-entry.ts";

type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === "string";
/**
 * Checks a text that a store saves outside JSON, such as the name of a session. The store would change a lone
 * surrogate in it.
 */
const isWellFormedText: Check = (value) => typeof value === "string" && value.isWellFormed();
const isName: Check = (value) =>
  typeof value === "string" && value !== "" && value.isWellFormed() && !value.includes("\0");
const isNameOrNull: Check = (value) => value === null || isName(value);
const isTextOrNull: Check = (value) => value === null || isText(value);
const isTime: Check = (value) => Number.isSafeInteger(value);
const isCount: Check = (value) => Number.isFinite(value) && (value as number) >= 0;
const isPresent: Check = (value) => value !== undefined;

/** The fields that an entry of each type must have in addition to the common ones. */
const fieldsOfType: { readonly [Type in SessionEntry["type"]]: Readonly<Record<string, Check>> } = {
  message: { message: isChatMessage },
  compaction: { summary: isText, firstKeptEntryId: isName, tokensBefore: isCount },
  branch_summary: { summary: isText, fromId: isName },
  leaf: { targetId: isNameOrNull },
  label: { targetId: isName, label: isTextOrNull },
  model_change: { provider: isName, modelId: isName },
  thinking_level_change: { level: (value) => (thinkingLevels as readonly unknown[]).includes(value) },
  session_info: { name: isWellFormedText },
  custom: { customType: isName, data: isPresent },
  custom_message: { customType: isName, message: isCustomMessage },
};

const commonFields: Readonly<Record<string, Check>> = {
  id: isName,
  parentId: isNameOrNull,
  at: isTime,
  runId: isNameOrNull,
  taskId: (value) => value === null || (isText(value) && /^t(?:0|[1-9][0-9]{0,14})$/u.test(value as string)),
};

/**
 * Checks an entry that comes from outside a run, such as from an application or an import. Throws `invalid_argument`
 * for a missing or malformed field, and `not_json` for a value that a store would change.
 *
 * @advanced
 */
export function checkEntry(entry: SessionEntry): void {
  const value: unknown = entry;
  if (typeof value !== "object" || value === null) throw refused("entry", value, "an object");
  assertJson(value, "entry");
  const record = value as Readonly<Record<string, unknown>>;
  const { type } = record;
  if (typeof type !== "string" || !Object.hasOwn(fieldsOfType, type))
    throw refused("type", type, `one of ${Object.keys(fieldsOfType).join(", ")}`);
  const fields = { ...commonFields, ...fieldsOfType[type as SessionEntry["type"]] };
  for (const [name, isValid] of Object.entries(fields))
    if (!isValid(record[name])) throw refused(name, record[name], `a valid ${name} of a ${type} entry`);
}

const textPart = { text: isText };
const mediaPart = { mediaType: isText, source: isSource };

/** The parts that a message of each role may have, with their fields. */
const partsOfRole: Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, Check>>>>>> = {
  user: { text: textPart, image: mediaPart, file: mediaPart },
  assistant: {
    text: textPart,
    file: mediaPart,
    reasoning: textPart,
    tool_call: { callId: isText, toolName: isText, input: isPresent },
    opaque: { provider: isText, value: isObject },
  },
  tool: { tool_result: { callId: isText, toolName: isText, output: isToolOutput, isError: isFlag } },
};

/** Whether the value is a message with a valid role and valid parts. */
export function isChatMessage(value: unknown): value is ChatMessage {
  if (!isObject(value)) return false;
  const { role, content } = value;
  if (role === "system") return isText(content);
  const parts = memberOf(partsOfRole, role);
  return parts !== undefined && Array.isArray(content) && content.every((part) => isPart(part, parts));
}

/**
 * Whether a value is valid as a custom message. It must contain no tool call and no tool result, because the other
 * half of the pair would be missing.
 */
function isCustomMessage(value: unknown): boolean {
  if (!isChatMessage(value)) return false;
  const { role, content } = value;
  if (role === "tool") return false;
  return !Array.isArray(content) || content.every((part: { type: string }) => part.type !== "tool_call");
}

function isPart(part: unknown, parts: Readonly<Record<string, Readonly<Record<string, Check>>>>): boolean {
  const fields = isObject(part) ? memberOf(parts, part["type"]) : undefined;
  if (fields === undefined) return false;
  const record = part as Readonly<Record<string, unknown>>;
  return Object.entries(fields).every(([name, isValid]) => isValid(record[name]));
}

function isSource(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { kind, data, url } = value;
  return (kind === "base64" && isText(data)) || (kind === "url" && isText(url));
}

/** Whether the value is the output of a tool, with valid parts. */
export function isToolOutput(value: unknown): value is ToolOutput {
  if (!isObject(value)) return false;
  const { type, text, value: json, parts } = value;
  if (type === "content")
    return Array.isArray(parts) && parts.every((part) => isPart(part, partsOfRole["user"] ?? {}));
  return (type === "text" && isText(text)) || (type === "json" && isPresent(json));
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isFlag(value: unknown): boolean {
  return typeof value === "boolean";
}

function memberOf<Value>(record: Readonly<Record<string, Value>>, name: unknown): Value | undefined {
  return typeof name === "string" && Object.hasOwn(record, name) ? record[name] : undefined;
}

function refused(name: string, value: unknown, expected: string): Fault {
  return new Fault(
    "invalid_argument",
    `invalid ${name} ${describeValue(value)} of a session entry: expected ${expected}`,
  );
}
