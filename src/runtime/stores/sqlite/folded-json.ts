import { setMember, type JsonObject, type JsonValue } from "../../../kernel/index.ts";
import { equalJson } from "./equal-json.ts";
import { memberCount } from "./member-count.ts";

/** Stands for what came before: the one of this number among all that may be repeated. */
const mark = "$same";
/** A shorter text is not worth a mark. */
const shortest = 16;
/** What lies deeper is kept as it is: a user's input may hold anything, and as much of it. */
const deepest = 6;
/** What holds more values than this is kept as it is: folding takes longer than writing them all. */
const mostValues = 4_000;

/**
 * The value with nothing in it twice: a long text that came before, and an object that did, is named by its number. Those in `known` came
 * before everything, and any object that is equal to one of them is it. A value that has our mark in it, or is very large, is kept as it is.
 */
export function foldJson(value: JsonObject, known: readonly JsonValue[]): JsonValue {
  const first = distinct(known);
  const numbers = new Map(first.map((each, index) => [each, index]));
  const objects = first.filter(isContainer);
  let isFolded = value["plain"] === undefined;
  let room = mostValues;
  const fold = (each: JsonValue, depth: number): JsonValue => {
    if (depth > deepest || !isFolded) return each;
    room--;
    if (Array.isArray(each) ? each.length > room : room < 0) isFolded = false;
    if (isObject(each) && Object.hasOwn(each, mark)) isFolded = false;
    if (!isFolded) return each;
    if (!mayRepeat(each)) return isContainer(each) ? mapMembers(each, depth, fold) : each;
    const same = isContainer(each) ? (objects.find((one) => equalJson(one, each)) ?? each) : each;
    const number = numbers.get(same);
    if (number !== undefined) return { [mark]: number };
    const folded = isContainer(each) ? mapMembers(each, depth, fold) : each;
    numbers.set(each, numbers.size);
    return folded;
  };
  const folded = fold(value, 0);
  return isFolded ? folded : { plain: value };
}

/** What `foldJson` was given. Throws a `SyntaxError` for what it has not made. */
export function unfoldJson(value: JsonValue, known: readonly JsonValue[]): JsonValue {
  if (isObject(value) && value["plain"] !== undefined) return value["plain"];
  const values = distinct(known);
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
  return unfold(value, 0);
}

/** Those that may be repeated, in their order and each once: a session may have the name of its agent. */
function distinct(known: readonly JsonValue[]): JsonValue[] {
  const values: JsonValue[] = [];
  for (const each of known)
    if (mayRepeat(each) && !values.some((value) => equalJson(value, each))) values.push(each);
  return values;
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
    setMember(copy, key, other);
  }
  return copy ?? value;
}

function isContainer(value: JsonValue): value is Container {
  return typeof value === "object" && value !== null;
}

function isObject(value: JsonValue): value is JsonObject {
  return isContainer(value) && !Array.isArray(value);
}
