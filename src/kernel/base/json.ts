import { Fault } from "./fault.ts";
import type { JsonValue } from "./json-value.ts";
import type { Hash } from "./sources.ts";
import { isLongText, longTextHash } from "./text.ts";

/**
 * J10: checks that a value is JSON and survives a round trip. It throws `not_json` with the path for `undefined` in
 * arrays, functions, symbols, bigints, NaN, infinities, -0, class instances, cycles and unreadable values. An object
 * property that is `undefined` counts as absent.
 */
export function assertJson(value: unknown, where = "value"): asserts value is JsonValue {
  const found = find(value);
  if (found === undefined) return;
  const path = found.path.length > longPath ? `${found.path.slice(0, longPath)}...` : found.path;
  throw new Fault("not_json", `${where}${path} ${found.problem}`);
}

/** Length at which a path in a message is cut. */
const longPath = 200;

/**
 * J1, J10: checks that a value is JSON, then freezes it so that it cannot change. If it is not JSON, it is not
 * frozen.
 */
export function sealJson(value: unknown, where?: string): asserts value is JsonValue {
  assertJson(value, where);
  freezeJson(value);
}

/**
 * Checks and freezes a value like `sealJson`, but skips symbol keys and extra properties of arrays. For values that
 * Reeve's own adapters made. A refused value may be partly frozen.
 */
export function sealMadeJson(value: unknown, where?: string): asserts value is JsonValue {
  if (!isMade(value, true)) sealJson(value, where);
}

/** Like `sealMadeJson`, without freezing. */
export function assertMadeJson(value: unknown, where?: string): asserts value is JsonValue {
  if (!isMade(value, false)) assertJson(value, where);
}

function isMade(value: unknown, freezes: boolean): boolean {
  try {
    return isMadeJson(value, 0, freezes);
  } catch {
    // A getter threw. The caller repeats the check with `assertJson`, which reports the problem.
    return false;
  }
}

/**
 * Checks in one pass whether the value is JSON, and optionally freezes it. `false` means that the value is not
 * JSON, or that only the full check can decide.
 */
function isMadeJson(value: unknown, depth: number, freezes: boolean): boolean {
  if (typeof value === "string" || typeof value === "boolean" || value === null) return true;
  if (typeof value === "number") return Number.isFinite(value) && !Object.is(value, -0);
  if (typeof value !== "object" || depth > shallow) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Array.prototype) {
    const list = value as readonly unknown[];
    for (let index = 0; index < list.length; index++)
      if (!isMadeJson(list[index], depth + 1, freezes)) return false;
  } else {
    if (prototype !== Object.prototype) return false;
    for (const key in value) {
      const member = (value as Readonly<Record<string, unknown>>)[key];
      // Most members are strings and numbers; checking them here saves a call.
      if (typeof member === "string" || member === undefined || member === null) continue;
      if (typeof member === "number" && Number.isFinite(member) && !Object.is(member, -0)) continue;
      if (!isMadeJson(member, depth + 1, freezes)) return false;
    }
  }
  if (freezes) Object.freeze(value);
  return true;
}

/**
 * Freezes a JSON value, which has no cycles. It does not call `Object.isFrozen` first, because that call costs as
 * much as freezing.
 */
function freezeJson(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  for (const member of Object.values(value)) if (typeof member === "object") freezeJson(member);
  Object.freeze(value);
}

export function isJson(value: unknown): value is JsonValue {
  return find(value) === undefined;
}

/** Returns a JSON value as text: a string as it is, `null` as an empty string, anything else serialised. */
export function jsonText(value: JsonValue): string {
  if (value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Returns a deep copy of a JSON value. */
export function copyJson<Value extends JsonValue>(value: Value): Value {
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map(copyJson) as unknown as Value;
  const copy: Record<string, JsonValue> = {};
  for (const key of Object.keys(value))
    setMember(copy, key, copyJson((value as Record<string, JsonValue>)[key] as JsonValue));
  return copy as Value;
}

/** Sets a property, including one named `__proto__`, which is an ordinary key in JSON. */
export function setMember(record: Record<string, JsonValue>, key: string, value: JsonValue): void {
  if (key !== "__proto__") record[key] = value;
  else Object.defineProperty(record, key, { value, writable: true, enumerable: true, configurable: true });
}

/**
 * Serialises a value so that equal JSON values give the same text: keys are sorted and absent properties omitted. Used
 * for digests.
 *
 * @advanced
 */
export function canonicalJson(value: unknown): string {
  return canonicalText(value, undefined);
}

/**
 * Serialises a value like `canonicalJson`, but writes the hash of a long text in place of the text. The result is
 * not JSON.
 */
export function digestText(value: unknown, hash: Hash): string {
  return canonicalText(value, hash);
}

function canonicalText(value: unknown, hash: Hash | undefined): string {
  switch (typeof value) {
    case "string":
      return quoted(value);
    case "number":
      return Number.isFinite(value) ? `${value}` : "null";
    case "boolean":
      return value ? "true" : "false";
    case "object":
      return value === null ? "null" : canonicalContainer(value, hash);
    default:
      return JSON.stringify(value) ?? "null";
  }
}

function canonicalContainer(value: object, hash: Hash | undefined): string {
  if (Array.isArray(value)) {
    let items = "";
    for (let index = 0; index < value.length; index++)
      items += `${index === 0 ? "" : ","}${canonicalMember(value, index, value[index], hash)}`;
    return `[${items}]`;
  }
  const record = value as Readonly<Record<string, unknown>>;
  const { sorted, quotedKeys } = keyOrder(Object.keys(record));
  let members = "";
  for (let index = 0; index < sorted.length; index++) {
    const key = sorted[index] ?? "";
    const member = record[key];
    if (member === undefined) continue;
    members += `${members === "" ? "" : ","}${quotedKeys[index]}${canonicalMember(record, key, member, hash)}`;
  }
  return `{${members}}`;
}

/** Returns the text of a member. A hash begins with `#`, which no JSON text begins with. */
function canonicalMember(
  holder: object,
  key: string | number,
  member: unknown,
  hash: Hash | undefined,
): string {
  return hash !== undefined && typeof member === "string" && isLongText(member)
    ? `#${longTextHash(holder, key, member, hash)}`
    : canonicalText(member, hash);
}

/** Matches a string that JSON writes without escapes: no quotes, backslashes, control characters or surrogates. */
// oxlint-disable-next-line no-control-regex -- they are what needs escaping
const needsNoEscape = /^[^"\\\u0000-\u001f\ud800-\udfff]*$/;

function quoted(text: string): string {
  return needsNoEscape.test(text) ? `"${text}"` : JSON.stringify(text);
}

interface KeyOrder {
  /** The keys in the order in which the object has them. */
  readonly keys: readonly string[];
  readonly sorted: readonly string[];
  /** The sorted keys, quoted and with the colon, in the order in which they are written. */
  readonly quotedKeys: readonly string[];
}

/** Recently seen key lists, indexed by their first key, so that equal objects are not sorted again. */
const orders = new Map<string, KeyOrder[]>();
let ordersKept = 0;
/**
 * Maximum number of cached key lists. It is limited because objects that use data as keys always have new lists,
 * for which a cache has no use.
 */
const mostOrders = 512;
/** Objects with more keys than this are not cached. */
const mostKeys = 16;

function keyOrder(keys: readonly string[]): KeyOrder {
  if (keys.length > mostKeys) return orderOf(keys);
  const known = orders.get(keys[0] ?? "");
  if (known !== undefined) for (const order of known) if (isSame(order.keys, keys)) return order;
  const order = orderOf(keys);
  if (++ordersKept > mostOrders) {
    orders.clear();
    ordersKept = 1;
  }
  if (known === undefined || ordersKept === 1) orders.set(keys[0] ?? "", [order]);
  else known.push(order);
  return order;
}

function orderOf(keys: readonly string[]): KeyOrder {
  const sorted = keys.toSorted((one, other) => (one < other ? -1 : 1));
  return { keys, sorted, quotedKeys: sorted.map((key) => `${quoted(key)}:`) };
}

function isSame(one: readonly string[], other: readonly string[]): boolean {
  if (one.length !== other.length) return false;
  for (let index = 0; index < one.length; index++) if (one[index] !== other[index]) return false;
  return true;
}

/**
 * The first problem found in a value. The path is built from the inside out, so that valid values cost nothing extra.
 */
interface NonJson {
  readonly path: string;
  readonly problem: string;
}

function find(value: unknown): NonJson | undefined {
  try {
    const found = isShallowJson(value, 0) ? undefined : findNonJson(value, new Set());
    // The path to a value below a thousand others helps no reader.
    return found?.problem === tooDeep ? { path: "", problem: tooDeep } : found;
  } catch (error) {
    const problem = error instanceof RangeError ? tooDeep : "cannot be read";
    return { path: "", problem };
  }
}

/**
 * J10: values nested deeper than this number of levels are refused wherever they enter, because code that reads them recursively would
 * exhaust the stack.
 */
export const deepestJson = 1_000;

const tooDeep = `is nested deeper than ${deepestJson} levels; pass a flatter value, or its JSON text`;

/** Values nested deeper than this are checked for cycles. */
const shallow = 48;

/**
 * Whether a value that is not deeply nested is valid JSON. This is the fast check, which does not say what is
 * wrong.
 */
function isShallowJson(value: unknown, depth: number): boolean {
  if (typeof value === "string" || typeof value === "boolean" || value === null) return true;
  if (typeof value === "number") return Number.isFinite(value) && !Object.is(value, -0);
  if (typeof value !== "object" || depth > shallow || Object.getOwnPropertySymbols(value).length > 0)
    return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Array.prototype) {
    const list = value as readonly unknown[];
    for (let index = 0; index < list.length; index++)
      if (!isShallowJson(list[index], depth + 1)) return false;
    return Object.keys(list).length === list.length;
  }
  if (prototype !== Object.prototype || "toJSON" in value) return false;
  for (const key in value) {
    const member = (value as Readonly<Record<string, unknown>>)[key];
    if (member !== undefined && !isShallowJson(member, depth + 1)) return false;
  }
  return true;
}

/**
 * Finds the first part of a value that is not JSON. `open` contains the objects and arrays around the value, so
 * that cycles are detected.
 */
function findNonJson(value: unknown, open: Set<object>): NonJson | undefined {
  switch (typeof value) {
    case "string":
    case "boolean":
      return undefined;
    case "number":
      if (Number.isFinite(value) && !Object.is(value, -0)) return undefined;
      return { path: "", problem: `is ${Object.is(value, -0) ? "-0" : value}, which JSON cannot hold` };
    case "object":
      return value === null ? undefined : findInContainer(value, open);
    case "undefined":
      return { path: "", problem: "is undefined, which JSON cannot hold" };
    default:
      return { path: "", problem: `is a ${typeof value}, which JSON cannot hold` };
  }
}

function findInContainer(value: object, open: Set<object>): NonJson | undefined {
  if (open.has(value)) return { path: "", problem: "contains itself" };
  if (open.size >= deepestJson) return { path: "", problem: tooDeep };
  if (Object.getOwnPropertySymbols(value).length > 0) {
    return { path: "", problem: "has a property under a symbol, which JSON cannot hold" };
  }
  open.add(value);
  const found = Array.isArray(value) ? findInArray(value, open) : findInObject(value, open);
  open.delete(value);
  return found;
}

function findInArray(value: readonly unknown[], open: Set<object>): NonJson | undefined {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Array.prototype && !isForeignPrototype(prototype, "flatMap")) return classInstance;
  for (let index = 0; index < value.length; index++) {
    const found = findNonJson(value[index], open);
    if (found !== undefined) return { ...found, path: `[${index}]${found.path}` };
  }
  if (Object.keys(value).length > value.length) {
    return { path: "", problem: "is an array with properties of its own, which JSON cannot hold" };
  }
  return undefined;
}

function findInObject(value: object, open: Set<object>): NonJson | undefined {
  const prototype: unknown = Object.getPrototypeOf(value);
  const plain =
    prototype === Object.prototype || prototype === null || isForeignPrototype(prototype, "isPrototypeOf");
  if (!plain) return classInstance;
  if ("toJSON" in value && typeof value.toJSON === "function") {
    return { path: "", problem: "has a toJSON of its own; store what it returns instead" };
  }
  for (const [key, member] of Object.entries(value)) {
    if (member === undefined) continue;
    const found = findNonJson(member, open);
    if (found !== undefined) return { ...found, path: `.${key}${found.path}` };
  }
  return undefined;
}

const classInstance: NonJson = { path: "", problem: "is a class instance; store its plain data instead" };

/**
 * Whether a prototype is `Object.prototype` or `Array.prototype` of another JavaScript realm. A method of its own
 * identifies it.
 */
function isForeignPrototype(prototype: unknown, method: "flatMap" | "isPrototypeOf"): boolean {
  if (typeof prototype !== "object" || prototype === null || !Object.hasOwn(prototype, method)) return false;
  const above: unknown = Object.getPrototypeOf(prototype);
  return method === "isPrototypeOf" ? above === null : isForeignPrototype(above, "isPrototypeOf");
}

/**
 * The digest of a JSON value, computed on first use and then cached (F1). The value must not change after construction.
 */
export class JsonDigest {
  static readonly ofNull: JsonDigest = new JsonDigest(null);
  readonly #value: unknown;
  #hash: Hash | undefined;
  #digest = "";

  constructor(value: unknown) {
    this.#value = value;
  }

  digest(hash: Hash): string {
    if (this.#hash !== hash) {
      this.#digest = hash(this.#text());
      this.#hash = hash;
    }
    return this.#digest;
  }

  /**
   * Returns the text that is hashed. A value that has no such text, because it contains itself, is refused by the
   * step that receives it (J10). The error is recorded, and its record needs a digest that is the same on replay.
   */
  #text(): string {
    try {
      return canonicalJson(this.#value);
    } catch {
      return "not JSON";
    }
  }
}

type Scalar = string | number | boolean | null | undefined | ((...args: never[]) => unknown);

/** The type with all properties `readonly`, recursively. JSON values and branded ids are unchanged. */
export type DeepReadonly<Value> = JsonValue extends Value
  ? Value
  : Value extends Scalar
    ? Value
    : { readonly [Key in keyof Value]: DeepReadonly<Value[Key]> };

/** Freezes a tree of plain objects and arrays in place. A subtree that is already frozen is not visited again. */
export function deepFreeze<Value>(value: Value): Value {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const key in value) if (typeof value[key] === "object" && value[key] !== null) deepFreeze(value[key]);
  return value;
}
