import { canonicalJson } from "./json.ts";
import type { JsonValue } from "./json-value.ts";

/** The first place at which two JSON values differ. */
export interface JsonDifference {
  /** Path of the place, such as `request.messages[1].content`. */
  readonly path: string;
  /** Value at this place in the first JSON value. `undefined` if the first value has none. */
  readonly recorded: JsonValue | undefined;
  /** Value at this place in the second JSON value. `undefined` if the second value has none. */
  readonly asked: JsonValue | undefined;
  /**
   * Number of equal values that were compared before the difference. A higher number means that the two values are
   * more similar.
   */
  readonly depth: number;
}

/** Returns the first difference between two JSON values, in the order of their members. `undefined` if they are equal. */
export function jsonDifference(
  recorded: JsonValue,
  asked: JsonValue,
  path: string,
  before = 0,
): JsonDifference | undefined {
  if (canonicalJson(recorded) === canonicalJson(asked)) return undefined;
  if (!isContainer(recorded) || !isContainer(asked) || Array.isArray(recorded) !== Array.isArray(asked))
    return { path, recorded, asked, depth: before };
  let depth = before;
  for (const key of new Set([...Object.keys(recorded), ...Object.keys(asked)])) {
    const [left, right] = [Reflect.get(recorded, key), Reflect.get(asked, key)] as (JsonValue | undefined)[];
    const at = Array.isArray(recorded) ? `${path}[${key}]` : `${path}.${key}`;
    if (left === undefined || right === undefined) return { path: at, recorded: left, asked: right, depth };
    const found = jsonDifference(left, right, at, depth);
    if (found !== undefined) return found;
    depth += 1;
  }
  return undefined;
}

/** Describes a difference between a recorded and a requested value in words. Long values are shortened. */
export function describeDifference({ path, recorded, asked }: JsonDifference): string {
  return `${path}: recorded ${shown(recorded)}, asked ${shown(asked)}`;
}

function isContainer(value: JsonValue): value is Exclude<JsonValue, null | string | number | boolean> {
  return typeof value === "object" && value !== null;
}

function shown(value: JsonValue | undefined): string {
  const text = value === undefined ? "nothing" : JSON.stringify(value);
  return text.length > 120 ? `${text.slice(0, 120)}...` : text;
}
