import { countIn, isObject, type Json, nameIn } from "./json-values.ts";

/** How a member of a request is checked. `true`: its value neither changes the price nor where the request goes. */
type MemberCheck = true | Check;

type Check = (value: unknown, found: Findings) => void;

/** The members that an object of a request may have. The configuration may allow further ones by name. */
export type MemberTable = Readonly<Record<string, MemberCheck>>;

/** What the checks of a request find. */
export class Findings {
  /** What the gateway does not know, or whose cost it cannot bound, by the names under which configuration may allow it. */
  readonly unbounded = new Set<string>();
  /** Number of images that are part of the request. */
  images = 0;
  /** Whether the request contains documents that their bytes do not bound. */
  hasDocuments = false;
  #problem: string | undefined;

  /** What is wrong with the request, or `undefined`. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Notes a document that the configuration must allow, because its bytes do not bound it. */
  document(name: string): void {
    this.unbounded.add(name);
    this.hasDocuments = true;
  }

  /** Notes something that no configuration allows. */
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

  /** Checks a list of objects. Some providers would read another value as a list of one element. */
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

  /** Returns an output limit. A reader that is lenient could take another value for a limit, or for none. */
  limit(object: Json, name: string): number | undefined {
    const value = object[name];
    if (value === undefined || value === null) return undefined;
    const limit = countIn(value);
    if (limit !== undefined && limit >= 1) return limit;
    this.reject(`${name} ${JSON.stringify(value).slice(0, 40)} is invalid: expected an integer from 1`);
    return undefined;
  }

  /** Servers that ignore case or underscores would read another spelling of a member as that member. */
  #unknown(name: string, value: unknown, table: MemberTable): void {
    const plain = plainName(name);
    const known = Object.keys(table).find((each) => plainName(each) === plain);
    if (known !== undefined) this.reject(`${name} is another spelling of ${known}; use ${known}`);
    else if (value !== null) this.unbounded.add(name);
  }
}

/** A check that refuses a member, unless the configuration allows it by name. */
export function refused(name: string): Check {
  return (value, found) => {
    if (!(Array.isArray(value) && value.length === 0)) found.unbounded.add(name);
  };
}

/** Like `refused`, for a member that names input which is stored at the provider, so that the request does not bound it. */
export function stored(name: string): Check {
  return (_value, found) => found.document(name);
}

/** A check that refuses every other value than these. `nameOf` is how the configuration may allow it. */
export function oneOf(values: readonly unknown[], nameOf: string | ((value: unknown) => string)): Check {
  return (value, found) => {
    if (!values.includes(value)) found.unbounded.add(typeof nameOf === "string" ? nameOf : nameOf(value));
  };
}

/** A check that the value is an object with these members. */
export function objectOf(name: string, table: MemberTable): Check {
  return (value, found) => {
    if (isObject(value)) found.members(value, table);
    else found.reject(`${name} is not an object`);
  };
}

/** A reader that is lenient could take a text or a number for `true`. */
export function flag(name: string): Check {
  return (value, found) => {
    if (typeof value !== "boolean") found.reject(`${name} is neither true nor false`);
  };
}

/** The price list has the price of a cache of five minutes. */
export const cacheControl: Check = (value, found) => {
  const ttl = isObject(value) ? (value["ttl"] ?? "5m") : "5m";
  if (ttl !== "5m") found.unbounded.add(`cache for ${nameIn(ttl)}`);
};

function plainName(name: string): string {
  return name.toLowerCase().replaceAll("_", "");
}

/** Checks an address of an image or a file. Only one that contains the data is part of the request. */
export function checkMedia(found: Findings, name: string, address: unknown): void {
  const text = typeof address === "string" ? address : "";
  if (/^data:(?!image\/)/i.test(text)) return found.document("file");
  found.images++;
  if (!/^data:/i.test(text)) found.unbounded.add(`${name} by url`);
}
