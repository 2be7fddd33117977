import type { JsonObject, JsonValue } from "../../../kernel/index.ts";
import { equalJson } from "./equal-json.ts";
import { memberCount } from "./member-count.ts";

/** Stands for what came before: the one of this number among all that may be repeated. */
const mark = "$same";
/** A shorter text is not worth a mark. */
const shortest = 16;
/** What lies deeper is kept as it is: a user's input may hold anything, and as much of it. */
const deepest = 6;

/**
 * The value with nothing in it twice: a long text that came before, and an object that did, is named by its number. Those in `known` came
 * before everything, and any object that is equal to one of them is it. A value that has our mark in it is kept as it is.
 */
export function foldJson(value: JsonObject, known: readonly JsonValue[]): JsonValue {
  const numbers = new Map<JsonValue, number>();
  const objects = known.filter(isObject);
  let isOurs = value["plain"] === undefined;
  const fold = (each: JsonValue, depth: number): JsonValue => {
    if (depth > deepest) return each;
    if (isObject(each) && Object.hasOwn(each, mark)) isOurs = false;
    if (!mayRepeat(each)) return isContainer(each) ? mapMembers(each, depth, fold) : each;
    const same = isContainer(each) ? (objects.find((one) => equalJson(one, each)) ?? each) : each;
    const number = numbers.get(same);
    if (number !== undefined) return { [mark]: number };
    const folded = isContainer(each) ? mapMembers(each, depth, fold) : each;
    numbers.set(each, numbers.size);
    return folded;
  };
  for (const each of known) fold(each, 0);
  const folded = fold(value, 0);
  return isOurs ? folded : { plain: value };
}

/** What `foldJson` was given. Throws a `SyntaxError` for what it has not made. */
export function unfoldJson(value: JsonValue, known: readonly JsonValue[]): JsonValue {
  if (isObject(value) && value["plain"] !== undefined) return value["plain"];
  const values: JsonValue[] = [];
  const unfold = (each: JsonValue, depth: number): JsonValue => {
    if (depth > deepest) return each;
    if (isObject(each)) {
      const number = each[mark];
      if (number !== undefined) return named(values, number);
    }
    const unfolded = isContainer(each) ? mapMembers(each, depth, unfold) : each;
    if (mayRepeat(unfolded)) values.push(unfolded);
    return unfolded;
  };
  for (const each of known) unfold(each, 0);
  return unfold(value, 0);
}

function mayRepeat(value: JsonValue): boolean {
  if (typeof value === "string") return value.length >= shortest;
  return isObject(value) && memberCount(value) > 1;
}

function named(values: readonly JsonValue[], number: JsonValue): JsonValue {
  const value = typeof number === "number" ? values[number] : undefined;
  if (value === undefined)
    throw new SyntaxError(`nothing that came before has the number ${JSON.stringify(number)}`);
  return value;
}

type Container = JsonObject | readonly JsonValue[];

/** The value itself where no member changes. */
function mapMembers(
  value: Container,
  depth: number,
  change: (member: JsonValue, depth: number) => JsonValue,
): Container {
  let copy: Record<string, JsonValue> | undefined;
  const members = value as JsonObject;
  for (const key of Object.keys(members)) {
    const member = members[key];
    if (member === undefined) continue;
    const other = change(member, depth + 1);
    if (other === member) continue;
    copy ??= (isObject(value) ? { ...value } : value.slice()) as Record<string, JsonValue>;
    if (key !== "__proto__") copy[key] = other;
    // Assigned, it would not be a key like any other.
    else
      Object.defineProperty(copy, key, {
        value: other,
        writable: true,
        enumerable: true,
        configurable: true,
      });
  }
  return copy ?? value;
}

function isContainer(value: JsonValue): value is Container {
  return typeof value === "object" && value !== null;
}

function isObject(value: JsonValue): value is JsonObject {
  return isContainer(value) && !Array.isArray(value);
}
