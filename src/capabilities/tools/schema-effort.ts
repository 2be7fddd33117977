import type { Ajv } from "ajv";
import { canonicalJson, Fault, type JsonValue } from "../../kernel/index.ts";

/**
 * Number of references that one check may follow, in addition to those that the size of the value explains. An
 * untrusted server may send a schema in which each definition refers twice to the next one; with thirty of them, a
 * check would follow a billion references.
 */
const spareReferences = 10_000;

/** Number of references that a check may follow for each member of the value. */
const referencesPerMember = 8;

/** The key that marks a counted reference. ajv calls the keyword each time it follows the reference. */
const counted = "reeve:counted";

/** The check that is in progress. ajv validates synchronously, so that there is at most one. */
let current: { readonly name: string; readonly value: unknown; followed: number; limit: number } | undefined;

/** Calls `validate`. Throws `invalid_argument` if it follows too many references. `name` describes the schema. */
export function checkWithin(name: string, value: unknown, validate: (value: unknown) => unknown): boolean {
  current = { name, value, followed: 0, limit: spareReferences };
  try {
    return validate(value) === true;
  } finally {
    current = undefined;
  }
}

/** Returns a part of a schema so that its reference is counted. Other parts are returned unchanged. */
export function countedReference(part: object): object {
  const isReference = ["$ref", "$dynamicRef", "$recursiveRef"].some(
    (key) => Object.hasOwn(part, key) && typeof Reflect.get(part, key) === "string",
  );
  return isReference && !Array.isArray(part) ? { ...part, [counted]: true } : part;
}

/** Adds the keyword of counted references, and replaces keywords that take quadratic time. */
export function linearKeywords(ajv: Ajv): Ajv {
  return ajv
    .addKeyword({ keyword: counted, validate: follow, errors: false })
    .removeKeyword("uniqueItems")
    .addKeyword({
      keyword: "uniqueItems",
      type: "array",
      schemaType: "boolean",
      validate: (isWanted: boolean, items: readonly JsonValue[]) => !isWanted || areUnique(items),
      error: { message: "must NOT have duplicate items" },
    });
}

function follow(): boolean {
  if (current === undefined || ++current.followed <= current.limit) return true;
  // The members are counted only once a check has followed many references, because most checks follow few.
  if (current.limit === spareReferences) current.limit += membersOf(current.value) * referencesPerMember;
  if (current.followed <= current.limit) return true;
  throw new Fault(
    "invalid_argument",
    `${current.name} is too complex: the check of a value followed more than ${current.limit} references; use fewer references inside anyOf, oneOf and allOf`,
  );
}

function membersOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 1;
  let members = 1;
  for (const member of Object.values(value)) members += membersOf(member);
  return members;
}

function areUnique(items: readonly JsonValue[]): boolean {
  return new Set(items.map((item) => canonicalJson(item))).size === items.length;
}
