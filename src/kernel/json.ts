import { Fault } from "./fault.ts";

export type JsonValue =
  | null
  | boolean
  | number
  | string
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue };

export type JsonObject = { readonly [key: string]: JsonValue };

/** The only door between program values and stored bytes. `decode` must accept every shape ever stored. */
export interface Codec<Value> {
  encode(value: Value): JsonValue;
  decode(json: JsonValue): Value;
}

/**
 * J10: what is stored is JSON, and comes back as it went in. Refused with `not_json`, naming the path: `undefined`
 * (also as an array's hole), functions, symbols, bigints, NaN and infinities, -0, class instances, cycles. An
 * object property that is `undefined` counts as absent.
 */
export function assertJson(value: unknown, where = "value"): asserts value is JsonValue {
  const found = findNonJson(value, []);
  if (found !== undefined) throw new Fault("not_json", `${where}${found.path} ${found.problem}`);
}

export function isJson(value: unknown): value is JsonValue {
  return findNonJson(value, []) === undefined;
}

/** One text for all values that are equal as JSON: keys sorted, absent properties left out. For digests. */
export function canonicalJson(value: unknown): string {
  if (value === null || typeof value !== "object") return JSON.stringify(value) ?? "null";
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([key, member]) => `${JSON.stringify(key)}:${canonicalJson(member)}`);
  return `{${members.join(",")}}`;
}

/** What is wrong, with the path built from the inside out, so that good values pay nothing for it. */
interface NonJson {
  path: string;
  readonly problem: string;
}

/** `open` holds the containers around `value`, to see cycles. */
function findNonJson(value: unknown, open: object[]): NonJson | undefined {
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

function findInContainer(value: object, open: object[]): NonJson | undefined {
  if (open.includes(value)) return { path: "", problem: "contains itself" };
  open.push(value);
  const found = Array.isArray(value) ? findInArray(value, open) : findInObject(value, open);
  open.pop();
  return found;
}

function findInArray(value: readonly unknown[], open: object[]): NonJson | undefined {
  for (let index = 0; index < value.length; index++) {
    const found = findNonJson(value[index], open);
    if (found !== undefined) return { ...found, path: `[${index}]${found.path}` };
  }
  return undefined;
}

function findInObject(value: object, open: object[]): NonJson | undefined {
  if (!isPlain(value)) return { path: "", problem: "is a class instance; store its plain data instead" };
  for (const [key, member] of Object.entries(value)) {
    if (member === undefined) continue;
    const found = findNonJson(member, open);
    if (found !== undefined) return { ...found, path: `.${key}${found.path}` };
  }
  return undefined;
}

/** A plain object has no prototype, or that of `Object` in any realm. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null;
}
