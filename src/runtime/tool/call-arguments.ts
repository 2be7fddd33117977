import { nearestJson, type CallArguments, type JsonValue, type Tool } from "../../kernel/index.ts";

/** The arguments of a call that were parsed once. The same object is judged and executed. */
export interface ParsedArguments extends CallArguments {
  /** `parsed` in JSON form. The same object as `sent` if they are equal. */
  readonly json: JsonValue;
}

/** T4: parses arguments. Rejects with `invalid_argument` if they do not match the schema. */
export async function parseArguments(tool: Tool, sent: JsonValue): Promise<ParsedArguments> {
  return parsedArguments(sent, await tool.parse(sent));
}

export function parsedArguments(sent: JsonValue, parsed: unknown): ParsedArguments {
  return { sent, parsed, json: isEqual(sent, parsed) ? sent : nearestJson(parsed) };
}

/** T3: coerces the arguments of a tool. */
export function coerceInput(tool: Tool, input: JsonValue): JsonValue {
  return tool.coerce === undefined ? input : tool.coerce(input);
}

/** Whether a value is JSON and equal to `json`. A property that is `undefined` counts as absent. */
function isEqual(json: JsonValue, value: unknown): boolean {
  if (json === value) return true;
  if (typeof json !== "object" || json === null || typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (Array.isArray(json)) {
    if (prototype !== Array.prototype) return false;
    const [items, others] = [json as readonly JsonValue[], value as readonly unknown[]];
    return items.length === others.length && items.every((item, index) => isEqual(item, others[index]));
  }
  if (prototype !== Object.prototype) return false;
  const [record, other] = [json as Readonly<Record<string, JsonValue>>, value as Record<string, unknown>];
  const keys = Object.keys(other).filter((key) => other[key] !== undefined);
  return (
    keys.length === Object.keys(record).length &&
    keys.every((key) => Object.hasOwn(record, key) && isEqual(record[key] as JsonValue, other[key]))
  );
}
