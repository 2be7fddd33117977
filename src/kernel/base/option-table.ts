import { describeValue } from "./describe-value.ts";
import { Fault } from "./fault.ts";
import { foreignNames } from "./foreign-names.ts";
import { isArray, readProperty } from "./read-property.ts";

/** What the value of one option must be. */
export interface OptionKind<Value = unknown> {
  /** Throws `invalid_argument` if the value is wrong. For `undefined` it is called only if the option is required. */
  readonly check?: (value: unknown, option: string, owner: string) => void;
  readonly isRequired?: boolean;
  /** The value of an absent option. */
  readonly default?: Value;
  /** The type of the values that `check` accepts. Used by the compiler only. */
  readonly accepts?: Value;
}

/** The names of the options in a type, and of each member if the type is a union. */
type NameIn<Options> = Options extends unknown ? Extract<keyof Options, string> : never;

type ValueIn<Options, Name> = Options extends unknown
  ? Name extends keyof Options
    ? Options[Name]
    : never
  : never;

/**
 * A table with the kind of each option in a type. `satisfies OptionKinds<Options>` reports a missing name, a name
 * that the type does not have, and a kind that accepts values which the type does not.
 */
export type OptionKinds<Options> = {
  readonly [Name in NameIn<Options>]: OptionKind<ValueIn<Options, Name>>;
};

type AnyKinds = Readonly<Record<string, OptionKind>>;

/** Options in which each option with a default has a value. */
export type Filled<Options, Kinds> = Options & {
  readonly [
    Name in keyof Options & keyof Kinds as Kinds[Name] extends { readonly default: unknown } ? Name : never
  ]-?: Exclude<Options[Name], undefined>;
};

/** Returns what to do with an option that belongs to another object, as a text for the error. */
type Elsewhere = (name: string) => string | undefined;

/**
 * Declares the options of a function or class once: the table gives the check, the errors and the defaults.
 *
 * ```ts
 * const limits = optionTable({
 *   maxAgents: is.integer({ from: 1, default: 50 }),
 *   onFull: is.choice(["refuse", "wait"]),
 * } satisfies OptionKinds<Limits>);
 * const { maxAgents, onFull } = limits.read("openTeam()", options);
 * ```
 */
export function optionTable<const Kinds extends AnyKinds>(
  kinds: Kinds,
  elsewhere?: Elsewhere,
): OptionTable<Kinds> {
  return new OptionTable(kinds, elsewhere);
}

export class OptionTable<Kinds extends AnyKinds = AnyKinds> {
  readonly kinds: Kinds;
  readonly #kinds: ReadonlyMap<string, OptionKind>;
  /** The names and kinds of the table as lists, so that `read` need not allocate memory for each entry. */
  readonly #names: readonly string[];
  readonly #kindOf: readonly OptionKind[];
  readonly #hasDefaults: boolean;
  readonly #elsewhere: Elsewhere | undefined;

  constructor(kinds: Kinds, elsewhere?: Elsewhere) {
    this.kinds = kinds;
    this.#kinds = new Map(Object.entries<OptionKind>(kinds));
    this.#names = [...this.#kinds.keys()];
    this.#kindOf = [...this.#kinds.values()];
    this.#hasDefaults = this.#kindOf.some((kind) => "default" in kind);
    this.#elsewhere = elsewhere;
  }

  /**
   * Returns the options with their defaults. Throws `invalid_argument` for a wrong value and for an unknown option,
   * because a misspelt limit would otherwise have no effect. `owner` is the function, class or object that takes
   * the options, for the error.
   */
  read<Options>(owner: string, options: Options): Filled<Options, Kinds> {
    let isUsed = false;
    let missing: string | undefined;
    const filled: Record<string, unknown> | undefined = this.#hasDefaults ? {} : undefined;
    if (isRecord(options)) {
      // `for in` creates no list: the options of a method are checked in every turn.
      for (const name in options) {
        if (!this.#kinds.has(name)) throw this.#unknown(owner, name);
        isUsed = true;
      }
      // `for in` does not see getters of a class and properties that are not enumerable, so each name is read.
      for (let index = 0; index < this.#names.length; index++) {
        const name = this.#names[index] as string;
        const kind = this.#kindOf[index] as OptionKind;
        const value: unknown = options[name as keyof typeof options];
        if (value !== undefined) {
          kind.check?.(value, name, owner);
          isUsed = true;
        } else if (kind.isRequired === true) missing ??= name;
        const result = value === undefined ? kind.default : value;
        if (filled !== undefined && result !== undefined) filled[name] = result;
      }
    }
    if (!isUsed && !(isRecord(options) && isPlain(options)))
      throw new Fault(
        "invalid_argument",
        `invalid options of ${owner}: expected an object with some of ${list(this.#names)}, not ${describeKind(options)}`,
      );
    if (missing !== undefined) this.#kinds.get(missing)?.check?.(undefined, missing, owner);
    return (filled ?? options) as Filled<Options, Kinds>;
  }

  #unknown(owner: string, name: string): Fault {
    const names = this.#names;
    const spelled = spelledAs(name, names);
    const foreign = spelled === undefined ? foreignNames.get(plain(name)) : undefined;
    const meant = spelled ?? foreign?.names?.find((each) => this.#kinds.has(each));
    const place = this.#elsewhere?.(name) ?? foreign?.elsewhere;
    const nearest = meant ?? (place === undefined ? nearestName(name, names) : undefined);
    const known = names.length === 0 ? "it takes no options" : `expected one of ${list(names)}`;
    const fix = nearest === undefined ? (place ?? known) : `use ${describeValue(nearest)}`;
    return new Fault("invalid_argument", `unknown option ${describeValue(name)} of ${owner}: ${fix}`);
  }
}

/** Creates the error of an option with a wrong value. `expected` says what the value must be, `hint` how to fix it. */
export function invalidOption(
  owner: string,
  option: string,
  value: unknown,
  expected: string,
  hint?: string,
): Fault {
  const isShort = (typeof value !== "object" || value === null) && typeof value !== "function";
  const what = isShort ? `${option} ${describeValue(value)}` : option;
  const not = isShort ? "" : `, not ${describeKind(value)}`;
  const fix = hint === undefined ? "" : `; ${hint}`;
  const wait = isPromise(value) ? "; await the promise" : "";
  return new Fault(
    "invalid_argument",
    `invalid ${what} of ${owner}: expected ${expected}${not}${fix}${wait}`,
  );
}

/** What every kind may say about an option. */
interface Rule<Value> {
  readonly required?: boolean;
  readonly default?: Value;
  /** How to fix a wrong value. */
  readonly hint?: string;
  /** A further value with its meaning, such as `[null, "no limit"]`. */
  readonly or?: readonly [value: Value, meaning: string];
}

interface NumberRule extends Rule<number | null> {
  readonly from?: number;
  readonly above?: number;
  readonly to?: number;
  readonly below?: number;
  readonly finite?: boolean;
}

/** An option kind, extended by the default and the additional value that its rule declares. */
type Made<Value, Given> = OptionKind<
  Value | (Given extends { readonly or: readonly [infer Other, string] } ? Other : never)
> &
  (Given extends { readonly default: infer Default } ? { readonly default: Default } : unknown);

function made<Value, Given extends Rule<unknown>>(
  isRight: (value: unknown) => boolean,
  expected: string,
  rule: Given,
): Made<Value, Given> {
  const { or, hint } = rule;
  const wanted = or === undefined ? expected : `${expected}, or ${String(or[0])} for ${or[1]}`;
  return {
    check(value: unknown, option: string, owner: string) {
      if (isRight(value) || (or !== undefined && value === or[0])) return;
      throw invalidOption(owner, option, value, wanted, hint);
    },
    ...(rule.required === true && { isRequired: true }),
    ...("default" in rule && { default: rule.default }),
  } as Made<Value, Given>;
}

function isFilledText(value: unknown): boolean {
  return typeof value === "string" && value.trim() !== "";
}

function rangeOf(what: string, { from, above, to, below }: NumberRule): string {
  const low = above === undefined ? from !== undefined && `from ${from}` : `above ${above}`;
  const most = to !== undefined && `${above === undefined ? "to" : "and at most"} ${to}`;
  return [what, low, below === undefined ? most : `and below ${below}`].filter(Boolean).join(" ");
}

function isWithin(value: number, { from, above, to, below }: NumberRule): boolean {
  if (from !== undefined && value < from) return false;
  if (above !== undefined && value <= above) return false;
  if (to !== undefined && value > to) return false;
  return below === undefined || value < below;
}

/**
 * The kinds of options. Each kind takes `required`, `default`, `hint` (how to fix a wrong value) and `or` (an
 * additional value with its meaning).
 */
export const is = {
  /** Accepts any value. The code that receives the option checks it. */
  any: {} satisfies OptionKind<never>,

  integer<const Given extends NumberRule>(rule: Given): Made<number, Given> {
    const isRight = (value: unknown): boolean =>
      Number.isSafeInteger(value) && isWithin(value as number, rule);
    return made(isRight, rangeOf("an integer", rule), rule);
  },

  number<const Given extends NumberRule>(rule: Given): Made<number, Given> {
    const { finite = false } = rule;
    const isRight = (value: unknown): boolean =>
      typeof value === "number" &&
      !Number.isNaN(value) &&
      isWithin(value, rule) &&
      (!finite || Number.isFinite(value));
    return made(isRight, rangeOf(finite ? "a finite number" : "a number", rule), rule);
  },

  boolean<const Given extends Rule<boolean>>(rule: Given = {} as Given): Made<boolean, Given> {
    return made((value) => typeof value === "boolean", "true or false", rule);
  },

  text<const Given extends Rule<string | null> & { readonly empty?: false }>(
    rule: Given = {} as Given,
  ): Made<string, Given> {
    if (rule.empty !== false) return made((value) => typeof value === "string", "a text", rule);
    return made(isFilledText, "a text that is not empty", rule);
  },

  callback<const Given extends Rule<never>>(rule: Given = {} as Given): Made<never, Given> {
    return made((value) => typeof value === "function", "a function", rule);
  },

  /** Accepts one of several texts. The error suggests the one that is most similar. */
  choice<const Choice extends string, const Given extends Rule<Choice>>(
    choices: readonly Choice[],
    rule: Given = {} as Given,
  ): Made<Choice, Given> {
    const expected = `one of ${list(choices)}`;
    const isChoice = (value: unknown): boolean => (choices as readonly unknown[]).includes(value);
    const kind = made<Choice, Given>(isChoice, expected, rule);
    return {
      ...kind,
      check(value: unknown, option: string, owner: string) {
        const nearest =
          typeof value === "string" && !isChoice(value) ? nearestName(value, choices) : undefined;
        if (nearest === undefined) return kind.check?.(value, option, owner);
        throw invalidOption(owner, option, value, expected, `use ${describeValue(nearest)}`);
      },
    };
  },

  /** Accepts an array. `of` is the kind of its entries. `null` counts as absent, except for a required option. */
  list<const Given extends Rule<readonly never[]> & { readonly of?: OptionKind }>(
    rule: Given = {} as Given,
  ): Made<never, Given> {
    const { of, required = false } = rule;
    const isRight = (value: unknown): boolean => (value === null && !required) || isArray(value);
    const kind = made<never, Given>(isRight, "an array", rule);
    if (of?.check === undefined) return kind;
    return {
      ...kind,
      check: (value: unknown, option: string, owner: string) => {
        kind.check?.(value, option, owner);
        for (const each of (value as readonly unknown[] | null) ?? []) of.check?.(each, option, owner);
      },
    };
  },

  /**
   * Accepts an object with named members. For the error, `members` says what the members are, and `example` is a
   * valid value.
   */
  named(members: string, example: string, rule: { readonly required?: boolean } = {}): OptionKind<never> {
    return made(isRecord, `an object with the ${members} by name`, { ...rule, hint: `use ${example}` });
  },

  /** Accepts an object with some methods. `null` counts as absent. `hint` says in the error what to pass. */
  withMethods(methods: readonly string[], hint?: string): OptionKind<never> {
    return { check: (value, option, owner) => checkMethods(`${option} of ${owner}`, value, methods, hint) };
  },

  /** Accepts an object of options with their own table. */
  options(table: OptionTable): OptionKind<never> {
    return { check: (value, option, owner) => void table.read(`${option} of ${owner}`, value) };
  },

  /** Accepts a value that passes a check. The check throws `invalid_argument` for a wrong value. */
  checkedBy(check: (value: never, option: string, owner: string) => unknown): OptionKind<never> {
    return { check: (value, option, owner) => void check(value as never, option, owner) };
  },
} as const;

function isRecord(value: unknown): value is object {
  return typeof value === "object" && value !== null && !isArray(value);
}

/** Whether an object is not an instance of a class, in this JavaScript realm or another. */
function isPlain(value: unknown): boolean {
  const above: unknown = Object.getPrototypeOf(value);
  return above === null || Object.getPrototypeOf(above) === null;
}

/** Describes a value for an error. An instance of a class, such as a Map, is described by the name of its class. */
export function describeKind(value: unknown): string {
  if (isPromise(value)) return "a promise";
  const name =
    isRecord(value) && !isPlain(value) ? readProperty(readProperty(value, "constructor"), "name") : undefined;
  return typeof name === "string" && name !== "" ? `an instance of ${name}` : describeValue(value);
}

function list(names: Iterable<string>): string {
  return [...names].join(", ");
}

/**
 * Throws `invalid_argument` if the value of an option is not one of the allowed values. `undefined` is accepted as
 * an absent option.
 */
export function checkChoice(owner: string, option: string, value: unknown, choices: readonly string[]): void {
  if (value !== undefined) is.choice(choices).check?.(value, option, owner);
}

/**
 * Throws `invalid_argument` if the value of an option is not an array. `undefined` and `null` are accepted as an
 * absent option. `option` names the option and its owner; `fix` says what to pass.
 */
export function checkList(option: string, value: unknown, fix: string): void {
  if (value === undefined || value === null || isArray(value)) return;
  throw new Fault(
    "invalid_argument",
    `invalid ${option}: expected an array, not ${describeKind(value)}; ${fix}${isPromise(value) ? ", and await the promise" : ""}`,
  );
}

/**
 * Throws `invalid_argument` if the value of an option is not an object with named members. `option` names the
 * option and its owner, `members` says what the object contains, and `example` is a valid value.
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
 * passed. `undefined` and `null` are accepted as an absent option. `option` names the option and its owner; `fix`
 * says what to pass.
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
 * Throws `invalid_argument` if an object has an optional method in another spelling, such as `before_call` for
 * `beforeCall`, because that method would never be called. `option` names the object.
 */
export function checkSpelling(option: string, value: unknown, methods: readonly string[]): void {
  for (const name of methodNames(value)) {
    const meant = methods.find((method) => isOtherSpelling(name, method));
    if (meant !== undefined)
      throw new Fault("invalid_argument", `invalid ${option}: unknown method ${name}; use ${meant}`);
  }
}

/**
 * Throws `invalid_argument` as `checkSpelling` does, and also for an object that has methods but none of the
 * optional ones. An object without any method is accepted.
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

/**
 * Throws if an object or its class has an unknown member that the author may have meant to be called: a function,
 * an object with `process`, or a list of such members, also under a symbol. Methods that the language calls, such
 * as `[Symbol.asyncDispose]`, are allowed. `problem` says what is wrong with the member and how to fix it.
 */
export function refuseOtherParts(
  place: string,
  value: object,
  known: readonly string[],
  problem: (name: string) => string,
): void {
  for (const key of memberKeys(value)) {
    if (typeof key === "string" ? known.includes(key) : ownSymbols.has(key)) continue;
    if (!isCallable(readProperty(value, key))) continue;
    const name = typeof key === "string" ? key : (key.description ?? "");
    const shown = typeof key === "string" ? describeValue(key) : String(key);
    throw new Fault("invalid_argument", `invalid ${place}: ${shown} ${problem(name)}`);
  }
}

/** Symbols whose methods the language or Node calls. */
const ownSymbols: ReadonlySet<unknown> = new Set([
  ...Object.getOwnPropertyNames(Symbol).map((name) => readProperty(Symbol, name)),
  Symbol.for("nodejs.util.inspect.custom"),
]);

/** Returns the names of the members of an object and of its class, without those that every object has. */
export function memberNames(value: object): readonly string[] {
  return [...memberKeys(value)].filter((key) => typeof key === "string");
}

function memberKeys(value: object): ReadonlySet<string | symbol> {
  const keys = new Set(Reflect.ownKeys(value));
  let at = Object.getPrototypeOf(value) as object | null;
  for (; at !== null && Object.getPrototypeOf(at) !== null; at = Object.getPrototypeOf(at) as object | null)
    for (const key of Reflect.ownKeys(at)) keys.add(key);
  keys.delete("constructor");
  return keys;
}

function isCallable(value: unknown): boolean {
  if (isArray(value)) return (value as readonly unknown[]).some(isCallable);
  return typeof value === "function" || hasMethod(value, "process");
}

/** Returns the names of the methods of an object and of its class, without those that every object has. */
function methodNames(value: unknown): readonly string[] {
  const names: string[] = [];
  for (let at = value; isRecord(at) && Object.getPrototypeOf(at) !== null; at = Object.getPrototypeOf(at))
    names.push(...Object.getOwnPropertyNames(at).filter((name) => hasMethod(value, name)));
  return names.filter((name) => name !== "constructor");
}

/**
 * Maximum length of names that are compared for similarity, which takes quadratic time. Longer names are only
 * compared exactly.
 */
const longestCompared = 64;

/**
 * Returns the name that a misspelt name probably means, or `undefined` if none is similar. Letter case, `_` and `-`
 * do not count, so `max_agents` means `maxAgents`. A name that is a part of another, or consists of some of its
 * words, is similar to it: `timeout` means `timeoutMs`, and `maxTokens` means `maxOutputTokens`.
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

/** Returns the name in a list that equals the sought one apart from letter case, `_` and `-`. */
export function spelledAs(sought: string, names: Iterable<string>): string | undefined {
  for (const name of names) if (plain(name) === plain(sought)) return name;
  return undefined;
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

/** Returns how many characters must be inserted, removed or replaced to turn one text into the other. */
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
