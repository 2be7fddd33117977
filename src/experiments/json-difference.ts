import { canonicalJson, type JsonValue } from "../kernel/index.ts";

/** A place at which two JSON values differ. An absent value is `undefined`. */
export interface JsonDifference {
  /** Path of the place, such as `items[2].price`. Empty for the whole value. */
  readonly path: string;
  readonly expected: JsonValue | undefined;
  readonly actual: JsonValue | undefined;
}

/** How two values are compared. */
export interface CompareOptions {
  /** Whether objects may have members that the expected value does not name. */
  readonly isSubset?: boolean;
  /** Maximum number of differences that are listed. */
  readonly most?: number;
}

/** Lists the places at which a value differs from the expected one, in the order of the expected value. */
export function jsonDifferences(
  expected: JsonValue | undefined,
  actual: JsonValue | undefined,
  { isSubset = false, most = 20 }: CompareOptions = {},
): readonly JsonDifference[] {
  const found: JsonDifference[] = [];
  const compare = (one: JsonValue | undefined, other: JsonValue | undefined, path: string): void => {
    if (found.length >= most) return;
    if (one !== undefined && other !== undefined) {
      if (canonicalJson(one) === canonicalJson(other)) return;
      if (Array.isArray(one) && Array.isArray(other)) {
        for (let at = 0; at < Math.max(one.length, other.length); at++)
          compare(one[at] as JsonValue | undefined, other[at] as JsonValue | undefined, `${path}[${at}]`);
        return;
      }
      if (isObject(one) && isObject(other)) {
        const names = isSubset ? Object.keys(one) : new Set([...Object.keys(one), ...Object.keys(other)]);
        for (const name of names) compare(memberOf(one, name), memberOf(other, name), join(path, name));
        return;
      }
    }
    found.push({ path, expected: one, actual: other });
  };
  compare(expected, actual, "");
  return found;
}

/** Describes a difference in one line. `whole` is the name for the value if it differs as a whole. */
export function differenceText({ path, expected, actual }: JsonDifference, whole = "value"): string {
  return `${path === "" ? whole : path}: expected ${shown(expected)}, got ${shown(actual)}`;
}

/** Cuts a value to a short text. */
export function shown(value: JsonValue | undefined): string {
  if (value === undefined) return "nothing";
  const text = JSON.stringify(value);
  return text.length > 120 ? `${text.slice(0, 119)}…` : text;
}

function isObject(value: JsonValue): value is { readonly [name: string]: JsonValue } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function memberOf(value: { readonly [name: string]: JsonValue }, name: string): JsonValue | undefined {
  return Object.hasOwn(value, name) ? value[name] : undefined;
}

function join(path: string, name: string): string {
  if (!/^[\p{L}_$][\p{L}\p{N}_$]*$/u.test(name)) return `${path}[${JSON.stringify(name)}]`;
  return path === "" ? name : `${path}.${name}`;
}
