import { setMember, type JsonObject, type JsonValue } from "../../../../kernel/index.ts";
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
  if (value["plain"] !== undefined) return { plain: value };
  const folding = new Folding(known);
  const folded = folding.fold(value, 0);
  return folding.isGivenUp ? { plain: value } : folded;
}

class Folding {
  /** The value is to be kept as it is. */
  isGivenUp = false;
  readonly #numbers = new Map<JsonValue, number>();
  readonly #objects: KnownObject[] = [];
  #room = mostValues;

  constructor(known: readonly JsonValue[]) {
    for (const each of distinct(known)) {
      this.#numbers.set(each, this.#numbers.size);
      if (isObject(each)) this.#objects.push({ value: each, count: memberCount(each) });
    }
  }

  fold(each: JsonValue, depth: number): JsonValue {
    if (depth > deepest || this.isGivenUp) return each;
    if (--this.#room < 0) this.isGivenUp = true;
    if (typeof each === "string") return each.length < shortest ? each : this.#once(each, each);
    if (typeof each !== "object" || each === null) return each;
    if (Array.isArray(each)) {
      if (each.length > this.#room) this.isGivenUp = true;
      return mapMembers(each, depth, this);
    }
    const members = each as JsonObject;
    if (Object.hasOwn(members, mark)) this.isGivenUp = true;
    const count = memberCount(members);
    if (count < 2) return mapMembers(members, depth, this);
    const number = this.#numbers.get(this.#known(members, count));
    return number === undefined ? this.#once(each, mapMembers(members, depth, this)) : { [mark]: number };
  }

  /** The known object that is equal to it, or else itself. */
  #known(value: JsonObject, count: number): JsonObject {
    for (const known of this.#objects)
      if (known.count === count && equalJson(known.value, value)) return known.value;
    return value;
  }

  /** The stored form of a value: its number if the value occurred before, otherwise its folded form. */
  #once(value: JsonValue, folded: JsonValue): JsonValue {
    const number = this.#numbers.get(value);
    if (number !== undefined) return { [mark]: number };
    this.#numbers.set(value, this.#numbers.size);
    return folded;
  }
}

/** What `foldJson` was given. Throws a `SyntaxError` for what it has not made. */
export function unfoldJson(value: JsonValue, known: readonly JsonValue[]): JsonValue {
  if (isObject(value) && value["plain"] !== undefined) return value["plain"];
  return new Unfolding(known).fold(value, 0);
}

class Unfolding {
  readonly #values: JsonValue[];

  constructor(known: readonly JsonValue[]) {
    this.#values = distinct(known);
  }

  fold(each: JsonValue, depth: number): JsonValue {
    if (depth > deepest) return each;
    if (typeof each === "string") {
      if (each.length >= shortest) this.#values.push(each);
      return each;
    }
    if (typeof each !== "object" || each === null) return each;
    if (Array.isArray(each)) return mapMembers(each, depth, this);
    const number = (each as JsonObject)[mark];
    if (number !== undefined) return named(this.#values, number);
    const unfolded = mapMembers(each, depth, this);
    if (memberCount(unfolded) > 1) this.#values.push(unfolded);
    return unfolded;
  }
}

/** Those that may be repeated, in their order and each once: a session may have the name of its agent. */
function distinct(known: readonly JsonValue[]): JsonValue[] {
  const values: JsonValue[] = [];
  for (const each of known) {
    const isText = typeof each === "string";
    const isKnown = isText ? values.includes(each) : values.some((value) => equalJson(value, each));
    if (!isKnown && mayRepeat(each)) values.push(each);
  }
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

interface KnownObject {
  readonly value: JsonObject;
  /** The folded members. */
  readonly count: number;
}

interface Fold {
  fold(value: JsonValue, depth: number): JsonValue;
}

/** The value itself where no member changes. */
function mapMembers(value: Container, depth: number, fold: Fold): Container {
  let copy: Record<string, JsonValue> | undefined;
  const members = value as JsonObject;
  for (const key of Object.keys(members)) {
    const member = members[key];
    if (member === undefined) continue;
    const other = fold.fold(member, depth + 1);
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
