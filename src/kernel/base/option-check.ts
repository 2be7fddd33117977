import { describeValue } from "./describe-value.ts";
import { Fault } from "./fault.ts";
import { isOtherSpelling, nearestName } from "./nearest-name.ts";
import { isArray, readProperty } from "./read-property.ts";

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
