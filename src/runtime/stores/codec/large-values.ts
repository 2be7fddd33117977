import { isLongText, longTextHash, type Hash } from "../../../kernel/index.ts";
import { isLarge } from "./text-units.ts";

/** Form of a content: a text as it is, or JSON. */
type ContentForm = "text" | "json";

/** A reference to a content: its hash, its form, and the members that lead to the place of its value. */
export type ContentRef = readonly [hash: string, form: ContentForm, ...path: (string | number)[]];

/** A value that is stored as a content. */
export interface LargeValue {
  readonly hash: string;
  readonly form: ContentForm;
  readonly value: unknown;
  /** The text that is stored. Absent if the value is the text, or if it was computed for an earlier commit. */
  readonly text?: string;
}

/** A JSON text without its large values, in place of which it contains `null`. */
export interface SplitText {
  readonly text: string;
  /**
   * JSON of a `ContentRef[]`, in which a value comes before the values that it contains. `null` if no value is
   * large.
   */
  readonly refs: string | null;
  readonly values: readonly LargeValue[];
}

/** A value without the large values in it. */
interface Part {
  readonly value: unknown;
  readonly refs: readonly ContentRef[];
  readonly values: readonly LargeValue[];
}

const none: readonly never[] = [];

/**
 * Moves large values out of JSON, so that a store keeps each of them only once. It moves the smallest values that
 * are large, for example a long text and not the message that contains it. If the rest of the message is still
 * large, it is moved too. Equal values are therefore always split in the same way.
 */
export class LargeValues {
  readonly #hash: Hash;
  /**
   * Split parts of frozen values. A tool result is first in the record of its call and later in an entry of the
   * session; the second time, it is neither serialised nor hashed again. Bench: `sessions`, row "large results".
   */
  readonly #known = new WeakMap<object, Part>();
  /**
   * Split parts of the values of the current text. They are kept because a value may occur several times, such as
   * an input in an event, an entry and a task of one commit.
   */
  readonly #met = new Map<object, Part>();
  /** The objects of that text that are large. */
  #large = new WeakSet<object>();

  constructor(hash: Hash) {
    this.#hash = hash;
  }

  /** Splits the members of each item in a list, such as the entries in a row. */
  splitItems(items: readonly object[]): SplitText {
    if (!items.some((item) => isLarge(item)))
      return { text: JSON.stringify(items), refs: null, values: none };
    return splitTextOf(this.#begin(() => this.#each(items, (item) => this.#members(item))));
  }

  /**
   * Splits the members of each item in each list of an object, such as the steps and events of a commit. If the
   * rest has more than `mostUnits` characters, it is stored as a content too.
   */
  splitLists(lists: object, mostUnits: number): SplitText {
    const part = this.#begin(() =>
      this.#each(lists, (list) =>
        Array.isArray(list) ? this.#each(list, (item) => this.#members(item)) : whole(list),
      ),
    );
    const split = splitTextOf(part);
    return split.text.length > mostUnits ? splitTextOf(this.#take(part)) : split;
  }

  /**
   * Splits a text. Facts about its objects are remembered during the split, which is synchronous, so that they stay
   * valid.
   */
  #begin(split: () => Part): Part {
    this.#large = new WeakSet();
    try {
      return split();
    } finally {
      this.#met.clear();
    }
  }

  #members(item: unknown): Part {
    return isObject(item) ? this.#each(item, (member, key) => this.#split(member, item, key)) : whole(item);
  }

  #split(value: unknown, holder: object, key: string | number): Part {
    if (!isLarge(value, this.#large)) return whole(value);
    if (typeof value === "string" && isLongText(value)) return this.#takeText(value, holder, key);
    if (!isObject(value)) return this.#take(whole(value));
    const known = this.#known.get(value) ?? this.#met.get(value);
    if (known !== undefined) return known;
    const rest = this.#members(value);
    const part = isLarge(rest.value) ? this.#take(rest) : rest;
    if (isFixed(value)) this.#known.set(value, withoutTexts(part));
    else this.#met.set(value, part);
    return part;
  }

  #takeText(value: string, holder: object, key: string | number): Part {
    const hash = longTextHash(holder, key, value, this.#hash);
    return { value: null, refs: [[hash, "text"]], values: [{ hash, form: "text", value }] };
  }

  /** Makes the value itself a content. */
  #take({ value, refs, values }: Part): Part {
    const text = JSON.stringify(value);
    const hash = this.#hash(text);
    return {
      value: null,
      refs: [[hash, "json"], ...refs],
      values: [{ hash, form: "json", value, text }, ...values],
    };
  }

  /** Splits each member of an object or array. The object is copied only if a member changes. */
  #each(holder: object, split: (member: unknown, key: string | number) => Part): Part {
    let rest: object | undefined;
    const refs: ContentRef[] = [];
    const values: LargeValue[] = [];
    const isList = Array.isArray(holder);
    // `for in` creates no list: an input may have 100,000 members, most of them small.
    for (const key in holder) {
      const member = (holder as Readonly<Record<string, unknown>>)[key];
      if (!mayBeLarge(member)) continue;
      const step = isList ? Number(key) : key;
      const part = split(member, step);
      if (part.refs.length === 0) continue;
      rest ??= Array.isArray(holder) ? [...(holder as readonly unknown[])] : { ...holder };
      setMember(rest, step, part.value);
      for (const [hash, form, ...path] of part.refs) refs.push([hash, form, step, ...path]);
      for (const value of part.values) values.push(value);
    }
    return rest === undefined ? whole(holder) : { value: rest, refs, values };
  }
}

/** Whether a value, or a value inside it, may be large. A number, a boolean and `null` never are. */
function mayBeLarge(value: unknown): boolean {
  return typeof value === "string" ? isLarge(value) : isObject(value);
}

/** Returns the text that a store keeps for the value. */
export function contentText({ form, value, text }: LargeValue): string {
  return text ?? (form === "text" ? (value as string) : JSON.stringify(value));
}

/** Returns the hashes of the contents that a text refers to, without duplicates. */
export function hashesIn(refs: string): readonly string[] {
  return [...new Set((JSON.parse(refs) as readonly ContentRef[]).map(([hash]) => hash))];
}

/**
 * Returns the value of a text, with its large values. Throws a `SyntaxError` if a content is missing or `LargeValues`
 * did not write the text.
 */
export function joinText(
  text: string,
  refs: string | null,
  contents: ReadonlyMap<string, string> | undefined,
): unknown {
  const root = { value: JSON.parse(text) as unknown };
  if (refs === null) return root.value;
  // The input of a run is in its first event and in its task. The value is parsed once, and both share it.
  const parsed = new Map<string, unknown>();
  for (const [hash, form, ...path] of JSON.parse(refs) as readonly ContentRef[]) {
    const content = contents?.get(hash);
    if (content === undefined) throw new SyntaxError(`content ${hash} is missing`);
    if (form === "json" && !parsed.has(hash)) parsed.set(hash, JSON.parse(content));
    place(root, ["value", ...path], form === "text" ? content : parsed.get(hash));
  }
  return root.value;
}

function place(root: object, path: readonly (string | number)[], value: unknown): void {
  let holder: unknown = root;
  for (const step of path.slice(0, -1))
    holder = isObject(holder) && Object.hasOwn(holder, step) ? holder[step] : undefined;
  const last = path.at(-1);
  if (!isObject(holder) || last === undefined)
    throw new SyntaxError(`the text has no place ${path.join("/")} for a content`);
  setMember(holder, last, value);
}

function splitTextOf({ value, refs, values }: Part): SplitText {
  return { text: JSON.stringify(value), refs: refs.length === 0 ? null : JSON.stringify(refs), values };
}

function whole(value: unknown): Part {
  return { value, refs: none, values: none };
}

function withoutTexts({ value, refs, values }: Part): Part {
  return { value, refs, values: values.map(({ text: _text, ...each }) => each) };
}

/** Whether nothing in the value can change any more. */
function isFixed(value: unknown): boolean {
  return !isObject(value) || (Object.isFrozen(value) && Object.values(value).every(isFixed));
}

function isObject(value: unknown): value is Record<string | number, unknown> {
  return typeof value === "object" && value !== null;
}

/** Sets a member of an object. An assignment to `__proto__` would change the prototype instead. */
function setMember(holder: object, key: string | number, value: unknown): void {
  if (key === "__proto__")
    Object.defineProperty(holder, key, { value, writable: true, enumerable: true, configurable: true });
  else (holder as Record<string | number, unknown>)[key] = value;
}
