import type { JsonObject, JsonValue } from "../../../kernel/index.ts";

/** Stands for what came before: the one of this number among all that may be repeated. */
const mark = "$same";
/** A shorter text is not worth a mark. */
const shortest = 16;

/**
 * The value with nothing in it twice: an object or a long text that came before is named by its number. Those in `known` came
 * before everything. A value that has our mark in it is kept as it is.
 */
export function foldJson(value: JsonValue, known: readonly JsonValue[]): JsonValue {
  const numbers = new Map<string, number>();
  let isOurs = !isObject(value) || value["plain"] === undefined;
  const fold = (each: JsonValue): JsonValue => {
    if (Array.isArray(each)) return each.map(fold);
    if (isObject(each) && Object.hasOwn(each, mark)) isOurs = false;
    if (!mayRepeat(each)) return isObject(each) ? mapMembers(each, fold) : each;
    const text = JSON.stringify(each);
    const number = numbers.get(text);
    if (number !== undefined) return { [mark]: number };
    const folded = isObject(each) ? mapMembers(each, fold) : each;
    numbers.set(text, numbers.size);
    return folded;
  };
  for (const each of known) fold(each);
  const folded = fold(value);
  return isOurs ? folded : { plain: value };
}

/** What `foldJson` was given. Throws a `SyntaxError` for what it has not made. */
export function unfoldJson(value: JsonValue, known: readonly JsonValue[]): JsonValue {
  if (isObject(value) && value["plain"] !== undefined) return value["plain"];
  const values: JsonValue[] = [];
  const unfold = (each: JsonValue): JsonValue => {
    if (Array.isArray(each)) return each.map(unfold);
    if (isObject(each)) {
      const number = each[mark];
      if (number !== undefined) return named(values, number);
    }
    const unfolded = isObject(each) ? mapMembers(each, unfold) : each;
    if (mayRepeat(unfolded)) values.push(unfolded);
    return unfolded;
  };
  for (const each of known) unfold(each);
  return unfold(value);
}

function mayRepeat(value: JsonValue): boolean {
  if (typeof value === "string") return value.length >= shortest;
  return isObject(value) && Object.keys(value).length > 1;
}

function named(values: readonly JsonValue[], number: JsonValue): JsonValue {
  const value = typeof number === "number" ? values[number] : undefined;
  if (value === undefined)
    throw new SyntaxError(`nothing that came before has the number ${JSON.stringify(number)}`);
  return value;
}

function mapMembers(value: JsonObject, change: (member: JsonValue) => JsonValue): JsonObject {
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, change(member)]));
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
