import { describeValue } from "../base/describe-value.ts";
import { Fault } from "../base/fault.ts";
import { assertJson } from "../base/json.ts";
import { thinkingLevels } from "../messages/thinking-level.ts";
import type { SessionEntry } from "./session-entry.ts";

type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === "string";
const isName: Check = (value) =>
  typeof value === "string" && value !== "" && value.isWellFormed() && !value.includes("\0");
const isNameOrNull: Check = (value) => value === null || isName(value);
const isTextOrNull: Check = (value) => value === null || isText(value);
const isTime: Check = (value) => Number.isSafeInteger(value);
const isCount: Check = (value) => Number.isFinite(value) && (value as number) >= 0;
const isPresent: Check = (value) => value !== undefined;

/** The fields that an entry of each type must have besides the common ones. */
const fieldsOfType: { readonly [Type in SessionEntry["type"]]: Readonly<Record<string, Check>> } = {
  message: { message: isMessage },
  compaction: { summary: isText, firstKeptEntryId: isName, tokensBefore: isCount },
  branch_summary: { summary: isText, fromId: isName },
  leaf: { targetId: isNameOrNull },
  label: { targetId: isName, label: isTextOrNull },
  model_change: { provider: isName, modelId: isName },
  thinking_level_change: { level: (value) => (thinkingLevels as readonly unknown[]).includes(value) },
  session_info: { name: isText },
  custom: { customType: isName, data: isPresent },
  custom_message: { customType: isName, message: isMessage },
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

const partLists: ReadonlySet<unknown> = new Set(["user", "assistant", "tool"]);

function isMessage(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { role, content } = value as { readonly role?: unknown; readonly content?: unknown };
  if (role === "system") return isText(content);
  return partLists.has(role) && Array.isArray(content) && content.every(isPart);
}

function isPart(part: unknown): boolean {
  if (typeof part !== "object" || part === null) return false;
  const { type, text } = part as { readonly type?: unknown; readonly text?: unknown };
  return isText(type) && (type !== "text" || isText(text));
}

function refused(name: string, value: unknown, expected: string): Fault {
  return new Fault(
    "invalid_argument",
    `invalid ${name} ${describeValue(value)} of a session entry: expected ${expected}`,
  );
}
