import {
  assertJson,
  describeValue,
  Fault,
  longestName,
  maxRecordBytes,
  recordsPerPage,
  type ExpectedVersion,
  type JsonValue,
  type RecordDraft,
  type RecordKey,
  type RecordQuery,
  is,
  optionTable,
  type OptionKinds,
} from "../../kernel/index.ts";

/** A checked record address. */
export interface RecordPlace {
  readonly namespace: string;
  readonly tenantId: string | null;
  readonly key: string;
}

/** A checked record, with its value as text. */
export interface RecordText extends RecordPlace {
  readonly body: string;
  readonly dueAt: number | null;
}

/** A checked query with its defaults. */
export interface RecordRange {
  readonly namespace: string;
  /** `undefined`: the records of all tenants. */
  readonly tenantId: string | null | undefined;
  readonly prefix: string;
  /**
   * Selects keys greater than this text. For a query of all tenants, it also selects every key of a tenant after
   * `afterTenant`.
   */
  readonly after: string;
  /** The tenant of the last record on the previous page, if the query is for all tenants. */
  readonly afterTenant: string | null;
  readonly limit: number;
}

const namespacePattern = /^[a-z][a-z0-9-]{0,63}$/;
const keyPattern = /^[\x21-\x7e]{1,512}$/;
const prefixPattern = /^[\x21-\x7e]{0,512}$/;

const keyTable = optionTable({
  namespace: is.text(),
  key: is.text(),
  tenantId: is.any,
} satisfies OptionKinds<RecordKey>);
const draftTable = optionTable({
  namespace: is.text(),
  key: is.text(),
  tenantId: is.any,
  value: is.any,
  dueAt: is.number({ or: [null, "no limit"] }),
} satisfies OptionKinds<RecordDraft>);
const queryTable = optionTable({
  namespace: is.text(),
  tenantId: is.any,
  allTenants: is.boolean({ default: false }),
  prefix: is.text({ default: "" }),
  after: is.text({ default: "" }),
  limit: is.number({}),
} satisfies OptionKinds<RecordQuery>);

/** R7: throws `invalid_argument`. */
export function recordPlace(key: RecordKey): RecordPlace {
  keyTable.read("a record key", key);
  return placeOf(key);
}

/** R7: checks a record and returns it with its value as text. Throws `invalid_argument`, `not_json` or `too_large`. */
export function recordText(record: RecordDraft): RecordText {
  draftTable.read("a record", record);
  const place = placeOf(record);
  const { value, dueAt = null } = record;
  if (dueAt !== null) recordTime("dueAt", dueAt);
  return { ...place, body: bodyOf(value, `record ${place.namespace}/${place.key}`), dueAt };
}

/** R7: throws `invalid_argument`. */
export function recordRange(query: RecordQuery): RecordRange {
  const { namespace, tenantId, allTenants, prefix, after, limit } = queryTable.read("list()", query);
  requireText("prefix", prefix, prefixPattern, "at most 512 printable ASCII characters without spaces");
  if (allTenants && tenantId !== undefined)
    throw refused("tenantId", tenantId, "no tenantId together with allTenants");
  const cursor = allTenants && after !== "" ? readCursor(after) : { key: after, tenantId: null };
  requireText("cursor", cursor.key, prefixPattern, cursorRule);
  return {
    namespace: recordNamespace(namespace),
    tenantId: allTenants ? undefined : recordTenant(tenantId ?? null),
    prefix,
    after: cursor.key,
    afterTenant: cursor.tenantId,
    limit: recordLimit(limit),
  };
}

const cursorRule = "the `next` of an earlier page of records";

/**
 * Matches a position: a key and the JSON of the tenant. A key contains no space, so that the first space separates
 * both.
 */
const cursorPattern = /^([\x21-\x7e]{1,512}) (null|".*")$/su;

function readCursor(text: string): { readonly key: string; readonly tenantId: string | null } {
  const [, key = "", tenant = ""] = cursorPattern.exec(text) ?? [];
  try {
    return { key, tenantId: recordTenant(JSON.parse(tenant) as string | null) };
  } catch {
    throw refused("cursor", text, cursorRule);
  }
}

/** Returns the value of `next` for a page that ends with this record. */
export function recordCursor(last: RecordPlace | undefined, { tenantId }: RecordRange): string | null {
  if (last === undefined) return null;
  return tenantId === undefined ? `${last.key} ${JSON.stringify(last.tenantId)}` : last.key;
}

export function recordNamespace(namespace: string): string {
  return requireText(
    "namespace",
    namespace,
    namespacePattern,
    "1 to 64 lower-case letters, digits and -, starting with a letter",
  );
}

export function recordLimit(limit: number = recordsPerPage): number {
  if (Number.isSafeInteger(limit) && limit >= 1) return limit;
  throw refused("limit", limit, "an integer from 1");
}

export function recordTime(name: string, time: number): number {
  if (Number.isSafeInteger(time) && time >= 0) return time;
  throw refused(name, time, "a time in epoch milliseconds");
}

export function expectedVersion(expected: ExpectedVersion): ExpectedVersion {
  return expected === "absent" ? expected : deletedVersion(expected);
}

export function deletedVersion(expected: number): number {
  if (Number.isSafeInteger(expected) && expected >= 1) return expected;
  throw refused("expected version", expected, 'the `version` of a record, or "absent" for a new record');
}

function placeOf({ namespace, key, tenantId = null }: RecordKey): RecordPlace {
  return {
    namespace: recordNamespace(namespace),
    tenantId: recordTenant(tenantId),
    key: requireText("key", key, keyPattern, "1 to 512 printable ASCII characters without spaces"),
  };
}

function recordTenant(tenantId: string | null): string | null {
  if (tenantId === null) return null;
  const isText = typeof tenantId === "string" && tenantId !== "";
  if (isText && tenantId.length <= longestName && tenantId.isWellFormed()) return tenantId;
  throw refused("tenantId", tenantId, `well-formed text of 1 to ${longestName} characters, or null`);
}

function bodyOf(value: JsonValue, where: string): string {
  assertJson(value, where);
  const body = JSON.stringify(value);
  const bytes = Buffer.byteLength(body);
  if (bytes <= maxRecordBytes) return body;
  throw new Fault(
    "too_large",
    `${where} is too large: it has ${bytes} bytes, and a record holds at most ${maxRecordBytes}; split it, or store a reference`,
    { details: { bytes, max: maxRecordBytes } },
  );
}

function requireText(name: string, text: unknown, pattern: RegExp, rule: string): string {
  if (typeof text === "string" && pattern.test(text)) return text;
  throw refused(name, text, rule);
}

function refused(name: string, value: unknown, rule: string): Fault {
  return new Fault(
    "invalid_argument",
    `invalid ${name} ${describeValue(value)} of a record: expected ${rule}`,
  );
}
