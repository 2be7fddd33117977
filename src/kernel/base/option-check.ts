import { describeValue } from "./describe-value.ts";
import { Fault } from "./fault.ts";

/** Longer names are compared exactly only, because the comparison takes quadratic time. */
const longestCompared = 64;

/**
 * Returns the name that a misspelt name probably means, or `undefined` if none is similar. Letter case, `_` and `-` do
 * not count, so `max_agents` means `maxAgents`. A part or some words of a name are similar to it, so `timeout` means
 * `timeoutMs`, and `maxTokens` means `maxOutputTokens`.
 */
export function nearestName(wrong: string, names: Iterable<string>): string | undefined {
  const sought = plain(wrong);
  if (sought === "" || sought.length > longestCompared) return undefined;
  let nearest: string | undefined;
  let least = Infinity;
  for (const name of names) {
    const other = plain(name);
    const distance = editDistance(sought, other);
    if (
      distance < least &&
      (distance <= Math.ceil(sought.length / 3) || isPart(sought, other) || areWords(wrong, name))
    )
      [nearest, least] = [name, distance];
  }
  return nearest;
}

/** Whether two names differ only in letter case, `_` and `-`. */
export function isOtherSpelling(one: string, other: string): boolean {
  return one !== other && plain(one) === plain(other);
}

function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[_\-\s]/gu, "");
}

function isPart(one: string, other: string): boolean {
  const [short, long] = one.length < other.length ? [one, other] : [other, one];
  return short.length >= 3 && long.includes(short);
}

/** Whether each word of the first name is a word of the other. */
function areWords(one: string, other: string): boolean {
  const words = wordsOf(one);
  return words.length > 1 && words.every((word) => wordsOf(other).includes(word));
}

function wordsOf(name: string): readonly string[] {
  return name.split(/[_\-\s]|(?=[A-Z])/u).map((word) => word.toLowerCase());
}

/** The number of characters to insert, remove or replace to turn one text into the other. */
function editDistance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let at = 0; at < one.length; at++) {
    const next = [at + 1];
    for (let to = 0; to < other.length; to++) {
      const replaced = (row[to] ?? 0) + (one[at] === other[to] ? 0 : 1);
      next.push(Math.min(replaced, (row[to + 1] ?? 0) + 1, (next[to] ?? 0) + 1));
    }
    row = next;
  }
  return row[other.length] ?? 0;
}

/**
 * Functions that read values of unknown origin. They never throw: a getter, proxy or method that throws reads as
 * absent.
 */

export function readProperty(value: unknown, key: string): unknown {
  if (!isObject(value)) return undefined;
  try {
    return Reflect.get(value, key);
  } catch {
    return undefined;
  }
}

export function readElements(value: unknown, limit: number): readonly unknown[] {
  const length = isArray(value) ? readProperty(value, "length") : 0;
  const count = typeof length === "number" ? Math.min(length, limit) : 0;
  const elements: unknown[] = [];
  for (let index = 0; index < count; index += 1) elements.push(readProperty(value, String(index)));
  return elements;
}

export function readLast(value: unknown): unknown {
  const length = isArray(value) ? readProperty(value, "length") : 0;
  return typeof length === "number" && length > 0 ? readProperty(value, String(length - 1)) : undefined;
}

/**
 * Reads a header from a plain object (in any letter case) or from an object with `get(name)`. `name` must be lower
 * case.
 */
export function readHeader(headers: unknown, name: string): string | undefined {
  try {
    const get = readProperty(headers, "get");
    if (typeof get === "function") return headerText(Reflect.apply(get, headers, [name]));
    if (!isObject(headers)) return undefined;
    const key = Object.keys(headers).find((candidate) => candidate.toLowerCase() === name);
    return key === undefined ? undefined : headerText(readProperty(headers, key));
  } catch {
    return undefined;
  }
}

/** Finds the JSON object in a text such as `429 {"error":…}` and the text before it. */
export function readEmbeddedJson(
  text: string,
): { readonly before: string; readonly value: object } | undefined {
  const start = text.indexOf("{");
  const end = text.lastIndexOf("}");
  if (start < 0 || end < start) return undefined;
  try {
    const value: unknown = JSON.parse(text.slice(start, end + 1));
    return isObject(value) ? { before: text.slice(0, start), value } : undefined;
  } catch {
    return undefined;
  }
}

export function isArray(value: unknown): boolean {
  try {
    return Array.isArray(value);
  } catch {
    return false; // a revoked proxy
  }
}

export function isObject(value: unknown): value is object {
  return (typeof value === "object" && value !== null) || typeof value === "function";
}

function headerText(value: unknown): string | undefined {
  const single = isArray(value) ? readProperty(value, "0") : value;
  if (typeof single === "number") return String(single);
  return typeof single === "string" ? single.trim() : undefined;
}

/** The names of the options in a type, and of each member if the type is a union. */
type NameIn<Options> = Options extends unknown ? Extract<keyof Options, string> : never;

/** The names of the options of one function or class, for `checkOptions`. */
export type OptionNames = ReadonlySet<string>;

/** Names of options that other libraries use, each with the text that says what to use instead. */
export type ForeignNames = Readonly<Record<string, string>>;

/** Lists the names of the options in a type. The compiler reports a name that is missing here, and one too many. */
export function optionNames<Options>(names: Readonly<Record<NameIn<Options>, true>>): OptionNames {
  return new Set(Object.keys(names));
}

/**
 * Throws `invalid_argument` if `options` is not an object or has an option without a meaning, because a misspelt limit
 * would otherwise not apply. `owner` is the function, class or object that takes the options. `foreign` says what to use
 * instead of an option that users of other libraries expect.
 */
export function checkOptions(
  owner: string,
  options: unknown,
  names: OptionNames,
  foreign: ForeignNames = noNames,
): void {
  let count = 0;
  // `for in` creates no list: the options of a method are checked in every turn.
  if (isRecord(options))
    for (const name in options) {
      if (!names.has(name)) throw unknownOption(owner, name, names, foreign);
      count++;
    }
  if (count > 0 || (isRecord(options) && isPlain(options))) return;
  throw new Fault(
    "invalid_argument",
    `invalid options of ${owner}: expected an object with some of ${list(names)}, not ${describeKind(options)}`,
  );
}

function isRecord(value: unknown): value is object {
  return typeof value === "object" && value !== null && !isArray(value);
}

/** Whether an object is no instance of a class, in this realm or another. */
function isPlain(value: unknown): boolean {
  const above: unknown = Object.getPrototypeOf(value);
  return above === null || Object.getPrototypeOf(above) === null;
}

/** Describes a value for an error; an instance such as a tracker or a Map by the name of its class. */
export function describeKind(value: unknown): string {
  if (isPromise(value)) return "a promise";
  const name =
    isRecord(value) && !isPlain(value) ? readProperty(readProperty(value, "constructor"), "name") : undefined;
  return typeof name === "string" && name !== "" ? `an instance of ${name}` : describeValue(value);
}

const noNames: ForeignNames = {};

function unknownOption(owner: string, name: string, names: OptionNames, foreign: ForeignNames): Fault {
  if (Object.hasOwn(foreign, name))
    return new Fault(
      "invalid_argument",
      `unknown option ${describeValue(name)} of ${owner}: ${foreign[name]}`,
    );
  const nearest = nearestName(name, names);
  const known = names.size === 0 ? "it takes no options" : `expected one of ${list(names)}`;
  const fix = nearest === undefined ? known : `use ${describeValue(nearest)}`;
  return new Fault("invalid_argument", `unknown option ${describeValue(name)} of ${owner}: ${fix}`);
}

function list(names: Iterable<string>): string {
  return [...names].join(", ");
}

/**
 * Throws `invalid_argument` if the value of an option is none of the allowed ones. `undefined` passes: the option is
 * absent.
 */
export function checkChoice(owner: string, option: string, value: unknown, choices: readonly string[]): void {
  if (value === undefined || choices.includes(value as string)) return;
  const nearest = typeof value === "string" ? nearestName(value, choices) : undefined;
  const fix = nearest === undefined ? "" : `; use ${describeValue(nearest)}`;
  throw new Fault(
    "invalid_argument",
    `invalid ${option} ${describeValue(value)} of ${owner}: expected one of ${list(choices)}${fix}`,
  );
}

/**
 * Throws `invalid_argument` if the value of an option is no array. `undefined` and `null` pass: the option is absent.
 * `option` names the option and its owner; `fix` says what to pass.
 */
export function checkList(option: string, value: unknown, fix: string): void {
  if (value === undefined || value === null || isArray(value)) return;
  throw new Fault(
    "invalid_argument",
    `invalid ${option}: expected an array, not ${describeKind(value)}; ${fix}${isPromise(value) ? ", and await the promise" : ""}`,
  );
}

/**
 * Throws `invalid_argument` if the value of an option is no object with members by name. `option` names the option and
 * its owner, `members` what the object contains, and `example` is a value that is accepted.
 */
export function requireNamed(option: string, value: unknown, members: string, example: string): void {
  if (isRecord(value)) return;
  throw new Fault(
    "invalid_argument",
    `invalid ${option}: expected an object with the ${members} by name, not ${describeValue(value)}; use ${example}`,
  );
}

/** Whether a value is a promise, for example because `await` was forgotten. */
export function isPromise(value: unknown): boolean {
  return hasMethod(value, "then");
}

/**
 * Throws `invalid_argument` if an object lacks one of the methods, for example because another kind of object was
 * passed. `undefined` and `null` pass: the option is absent. `option` names the option and its owner; `fix` says what
 * to pass.
 */
export function checkMethods(
  option: string,
  value: unknown,
  methods: readonly string[],
  fix = `expected an object with ${list(methods)}`,
): void {
  if (value === undefined || value === null) return;
  const missing = methods.find((method) => !hasMethod(value, method));
  if (missing === undefined) return;
  throw new Fault("invalid_argument", `invalid ${option}: it has no method ${missing}; ${fix}`);
}

/**
 * Throws `invalid_argument` if an object has one of the optional methods in another spelling, such as `before_call` for
 * `beforeCall`, because it would never be called. `option` names the object.
 */
export function checkSpelling(option: string, value: unknown, methods: readonly string[]): void {
  for (const name of methodNames(value)) {
    const meant = methods.find((method) => isOtherSpelling(name, method));
    if (meant !== undefined)
      throw new Fault("invalid_argument", `invalid ${option}: unknown method ${name}; use ${meant}`);
  }
}

/**
 * Like `checkSpelling`, and throws if none of an object's methods is one of the optional ones. An object without any
 * method passes: it does nothing, and does not claim to.
 */
export function checkOptionalMethods(option: string, value: unknown, methods: readonly string[]): void {
  checkSpelling(option, value, methods);
  const own = methodNames(value);
  if (own.length === 0 || own.some((name) => methods.includes(name))) return;
  throw new Fault("invalid_argument", `invalid ${option}: it has none of the methods ${list(methods)}`);
}

function hasMethod(value: unknown, method: string): boolean {
  return typeof readProperty(value, method) === "function";
}

/** The names of the methods of an object, with those of its class, without those of every object. */
function methodNames(value: unknown): readonly string[] {
  const names: string[] = [];
  for (let at = value; isRecord(at) && Object.getPrototypeOf(at) !== null; at = Object.getPrototypeOf(at))
    names.push(...Object.getOwnPropertyNames(at).filter((name) => hasMethod(value, name)));
  return names.filter((name) => name !== "constructor");
}
