import { countIn, isObject, type Json, nameIn } from "./json-values.ts";

/**
 * How a member of a request is checked. `true` means that its value changes neither the price nor the server to
 * which the request is sent.
 */
type MemberCheck = true | Check;

type Check = (value: unknown, found: Findings) => void;

/** The members that an object of a request may have. The configuration may allow further ones by name. */
export type MemberTable = Readonly<Record<string, MemberCheck>>;

/** What the checks of a request find. */
export class Findings {
  /**
   * Features of the request that the gateway does not know, or whose cost it cannot limit, by the names with which
   * the configuration may allow them.
   */
  readonly unbounded = new Set<string>();
  /** Number of images that are part of the request. */
  images = 0;
  /** Whether the request contains documents whose bytes give no bound of their tokens. */
  hasDocuments = false;
  #problem: string | undefined;

  /** What is wrong with the request. `undefined` if it is valid. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Records a document that the configuration must allow, because its bytes give no bound of its tokens. */
  document(name: string): void {
    this.unbounded.add(name);
    this.hasDocuments = true;
  }

  /** Records a problem that no configuration can allow. */
  reject(problem: string): void {
    this.#problem ??= problem;
  }

  /** Checks the members of an object. A member that is `null` counts as absent. */
  members(object: Json, table: MemberTable): void {
    for (const [name, value] of Object.entries(object)) {
      const check = Object.hasOwn(table, name) ? table[name] : undefined;
      if (check === undefined) this.#unknown(name, value, table);
      else if (check !== true && value !== null) check(value, this);
    }
  }

  /**
   * Checks a list of objects. Other values are refused, because some providers would read them as a list of one
   * element.
   */
  list(name: string, value: unknown, check: (element: Json) => void): void {
    if (value === undefined || value === null) return;
    if (!Array.isArray(value)) return this.reject(`${name} is not a list; use a list`);
    for (const element of value as readonly unknown[])
      if (isObject(element)) check(element);
      else this.reject(`${name} contains a value that is not an object`);
  }

  /** Checks a content, which is a text or a list of parts. */
  content(name: string, value: unknown, check: (part: Json) => void): void {
    if (typeof value !== "string") this.list(name, value, check);
  }

  /**
   * Returns an output limit. It accepts only a number, because a lenient provider could read another value as a
   * different limit, or as none.
   */
  limit(object: Json, name: string): number | undefined {
    const value = object[name];
    if (value === undefined || value === null) return undefined;
    const limit = countIn(value);
    if (limit !== undefined && limit >= 1) return limit;
    this.reject(`${name} ${JSON.stringify(value).slice(0, 40)} is invalid: expected an integer from 1`);
    return undefined;
  }

  /**
   * Records an unknown member. Another spelling of a known member is refused, because servers that ignore case or
   * underscores would read it as that member.
   */
  #unknown(name: string, value: unknown, table: MemberTable): void {
    const plain = plainName(name);
    const known = Object.keys(table).find((each) => plainName(each) === plain);
    if (known !== undefined) this.reject(`${name} is another spelling of ${known}; use ${known}`);
    else if (value !== null) this.unbounded.add(name);
  }
}

/** Creates a check that refuses a member, unless the configuration allows it by name. */
export function refused(name: string): Check {
  return (value, found) => {
    if (!(Array.isArray(value) && value.length === 0)) found.unbounded.add(name);
  };
}

/**
 * Creates a check like `refused`, for a member that names input which is stored at the provider. The request then
 * gives no bound of its size.
 */
export function stored(name: string): Check {
  return (_value, found) => found.document(name);
}

/**
 * Creates a check that refuses all values except these. `nameOf` is the name with which the configuration may allow
 * another value.
 */
export function oneOf(values: readonly unknown[], nameOf: string | ((value: unknown) => string)): Check {
  return (value, found) => {
    if (!values.includes(value)) found.unbounded.add(typeof nameOf === "string" ? nameOf : nameOf(value));
  };
}

/** Creates a check that the value is an object with these members. */
export function objectOf(name: string, table: MemberTable): Check {
  return (value, found) => {
    if (isObject(value)) found.members(value, table);
    else found.reject(`${name} is not an object`);
  };
}

/**
 * Creates a check for a boolean. Other values are refused, because a lenient provider could read a text or a number
 * as `true`.
 */
export function flag(name: string): Check {
  return (value, found) => {
    if (typeof value !== "boolean") found.reject(`${name} is neither true nor false`);
  };
}

/** Checks the lifetime of a cache entry. Only five minutes are allowed, because the price list has only this price. */
export const cacheControl: Check = (value, found) => {
  const ttl = isObject(value) ? (value["ttl"] ?? "5m") : "5m";
  if (ttl !== "5m") found.unbounded.add(`cache for ${nameIn(ttl)}`);
};

function plainName(name: string): string {
  return name.toLowerCase().replaceAll("_", "");
}

/** Checks the address of an image or a file. Only an address that contains the data makes it a part of the request. */
export function checkMedia(found: Findings, name: string, address: unknown): void {
  const text = typeof address === "string" ? address : "";
  if (/^data:(?!image\/)/i.test(text)) return found.document("file");
  found.images++;
  if (!/^data:/i.test(text)) found.unbounded.add(`${name} by url`);
}
