import type { JsonValue } from "./json-value.ts";
import { Fault } from "./fault.ts";

/**
 * J10: what is stored is JSON, and comes back as it went in. Refused with `not_json`, naming the path: `undefined`
 * (also as an array's hole), functions, symbols, bigints, NaN and infinities, -0, class instances, cycles, what cannot be read. An
 * object property that is `undefined` counts as absent.
 */
export function assertJson(value: unknown, where = "value"): asserts value is JsonValue {
  const found = find(value);
  if (found !== undefined) throw new Fault("not_json", `${where}${found.path} ${found.problem}`);
}

/** J1, J10: asserts, and freezes what it is given: it cannot become anything else. What is refused stays as it is. */
export function sealJson(value: unknown, where?: string): asserts value is JsonValue {
  assertJson(value, where);
  freezeJson(value);
}

/**
 * The same for what an adapter made: nobody hides things in it under symbols, or beside the items of an array, so nobody looks there.
 * Parts of what is refused may be frozen.
 */
export function sealMadeJson(value: unknown, where?: string): asserts value is JsonValue {
  if (!isMade(value, true)) sealJson(value, where);
}

/** As `sealMadeJson`, and nothing is frozen. */
export function assertMadeJson(value: unknown, where?: string): asserts value is JsonValue {
  if (!isMade(value, false)) assertJson(value, where);
}

function isMade(value: unknown, freezes: boolean): boolean {
  try {
    return isMadeJson(value, 0, freezes);
  } catch {
    // What cannot be read: who looks again says what is wrong.
    return false;
  }
}

/** Looks, and freezes, in one go. False: something is wrong, or needs another look. */
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
      // Most members are texts and numbers: no call for those.
      if (typeof member === "string" || member === undefined || member === null) continue;
      if (typeof member === "number" && Number.isFinite(member) && !Object.is(member, -0)) continue;
      if (!isMadeJson(member, depth + 1, freezes)) return false;
    }
  }
  if (freezes) Object.freeze(value);
  return true;
}

/** Of JSON, which ends somewhere. To ask whether something is frozen takes as long as to freeze it. */
function freezeJson(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  for (const member of Object.values(value)) if (typeof member === "object") freezeJson(member);
  Object.freeze(value);
}

export function isJson(value: unknown): value is JsonValue {
  return find(value) === undefined;
}

/** As words: a text is itself, `null` says nothing, anything else is written as JSON. */
export function jsonText(value: JsonValue): string {
  if (value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** A copy that shares nothing with the original. */
export function copyJson<Value extends JsonValue>(value: Value): Value {
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map(copyJson) as unknown as Value;
  const copy: Record<string, JsonValue> = {};
  for (const key of Object.keys(value))
    setMember(copy, key, copyJson((value as Record<string, JsonValue>)[key] as JsonValue));
  return copy as Value;
}

/** Also under `__proto__`: in JSON that is a key like any other. */
export function setMember(record: Record<string, JsonValue>, key: string, value: JsonValue): void {
  if (key !== "__proto__") record[key] = value;
  else Object.defineProperty(record, key, { value, writable: true, enumerable: true, configurable: true });
}

/** One text for all values that are equal as JSON: keys sorted, absent properties left out. For digests. */
export function canonicalJson(value: unknown): string {
  switch (typeof value) {
    case "string":
      return quoted(value);
    case "number":
      return Number.isFinite(value) ? `${value}` : "null";
    case "boolean":
      return value ? "true" : "false";
    case "object":
      return value === null ? "null" : canonicalContainer(value);
    default:
      return JSON.stringify(value) ?? "null";
  }
}

function canonicalContainer(value: object): string {
  if (Array.isArray(value)) {
    let items = "";
    for (let index = 0; index < value.length; index++)
      items += index === 0 ? canonicalJson(value[index]) : `,${canonicalJson(value[index])}`;
    return `[${items}]`;
  }
  const record = value as Readonly<Record<string, unknown>>;
  const { sorted, quotedKeys } = keyOrder(Object.keys(record));
  let members = "";
  for (let index = 0; index < sorted.length; index++) {
    const member = record[sorted[index] ?? ""];
    if (member === undefined) continue;
    members += `${members === "" ? "" : ","}${quotedKeys[index]}${canonicalJson(member)}`;
  }
  return `{${members}}`;
}

/** Without quotes, escapes, control characters and halves of pairs a text needs no escaping. */
// oxlint-disable-next-line no-control-regex -- they are what needs escaping
const needsNoEscape = /^[^"\\\u0000-\u001f\ud800-\udfff]*$/;

function quoted(text: string): string {
  return needsNoEscape.test(text) ? `"${text}"` : JSON.stringify(text);
}

interface KeyOrder {
  /** As the object has them. */
  readonly keys: readonly string[];
  readonly sorted: readonly string[];
  /** In the same order, each with what comes between it and its value. */
  readonly quotedKeys: readonly string[];
}

/** Objects with these keys came by of late, by the first of them. */
const orders = new Map<string, KeyOrder[]>();
let ordersKept = 0;
/** Where keys are data, each object has its own: then there is nothing to be gained by keeping more. */
const mostOrders = 512;
/** So are those of an object with very many. */
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

/** What is wrong, with the path built from the inside out, so that good values pay nothing for it. */
interface NonJson {
  readonly path: string;
  readonly problem: string;
}

function find(value: unknown): NonJson | undefined {
  try {
    return isShallowJson(value, 0) ? undefined : findNonJson(value, new Set());
  } catch (error) {
    const problem = error instanceof RangeError ? "is nested too deep" : "cannot be read";
    return { path: "", problem };
  }
}

/** Deeper values are looked at with an eye for cycles. */
const shallow = 48;

/** Whether all is well, for what is not very deep: the common case, without a word about what is wrong. */
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

/** `open` holds the containers around `value`, to see cycles. */
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

/** That of `Object` or `Array` in another realm: known by a method only it has of its own. */
function isForeignPrototype(prototype: unknown, method: "flatMap" | "isPrototypeOf"): boolean {
  if (typeof prototype !== "object" || prototype === null || !Object.hasOwn(prototype, method)) return false;
  const above: unknown = Object.getPrototypeOf(prototype);
  return method === "isPrototypeOf" ? above === null : isForeignPrototype(above, "isPrototypeOf");
}
