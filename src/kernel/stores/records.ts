import type { JsonValue } from "../base/json-value.ts";

/** Maximum size of a record's value, in bytes of its JSON text in UTF-8. */
export const maxRecordBytes = 65_536;

/** Default number of records on a page of `list`, and of records that `due` returns. */
export const recordsPerPage = 100;

/** The address of a record. Records of different tenants are different records, even with the same key. */
export interface RecordKey {
  /** Kind of record, such as `schedules`: 1 to 64 lower-case letters, digits and `-`, starting with a letter. */
  readonly namespace: string;
  /** Key of the record: 1 to 512 printable ASCII characters without spaces. */
  readonly key: string;
  /** Id of the tenant. `null` or absent for a record that belongs to no tenant. */
  readonly tenantId?: string | null | undefined;
}

/** A record as `put` receives it. @advanced */
export interface RecordDraft extends RecordKey {
  readonly value: JsonValue;
  /** Time in epoch milliseconds from which `due` returns the record. `null` or absent means never. */
  readonly dueAt?: number | null | undefined;
}

/** A record as a store returns it. @advanced */
export interface StoredRecord {
  readonly namespace: string;
  readonly key: string;
  readonly tenantId: string | null;
  readonly value: JsonValue;
  readonly dueAt: number | null;
  /** Version of the record, which changes with every write. A store never uses the same version twice. */
  readonly version: number;
}

/**
 * The version that the caller expects the stored record to have, or `absent` if the caller expects that no record
 * exists.
 */
export type ExpectedVersion = number | "absent";

/**
 * The outcome of a write. On a conflict nothing has changed, and `current` is the existing record, if any. `isFull`
 * says that the tenant already has `maxRecords` records in the namespace (R10).
 *
 * @advanced
 */
export type RecordWrite =
  | { readonly kind: "stored"; readonly version: number }
  | { readonly kind: "conflict"; readonly current: StoredRecord | undefined; readonly isFull?: true };

/** The outcome of a deletion. On a conflict nothing has changed, and `current` is the existing record, if any. */
export type RecordDeletion =
  | { readonly kind: "deleted" }
  | { readonly kind: "conflict"; readonly current: StoredRecord | undefined };

/** Which records `Records.list` returns. @advanced */
export interface RecordQuery {
  readonly namespace: string;
  /** Id of the tenant. `null` or absent selects the records that belong to no tenant. */
  readonly tenantId?: string | null | undefined;
  /**
   * Whether to return the records of all tenants and those without a tenant. Cannot be combined with `tenantId`.
   * Default: `false`.
   */
  readonly allTenants?: boolean | undefined;
  /** Selects records whose key starts with this text. */
  readonly prefix?: string | undefined;
  /** `next` of the previous page. */
  readonly after?: string | undefined;
  /** Maximum number of records. Default: 100. */
  readonly limit?: number | undefined;
}

/** One page of the records that a `RecordQuery` selects, in the order of their keys. @advanced */
export interface RecordPage {
  readonly records: readonly StoredRecord[];
  /** Position of the next page, to pass as `after`. `null` on the last page. */
  readonly next: string | null;
}

/**
 * Small JSON values by namespace, tenant and key, such as schedules, tokens and pairings. Every store passes
 * `recordContract`, which checks:
 *
 * - R1 `get` returns what the last `put` stored. Later changes to the caller's objects have no effect.
 * - R2 `put` with an expected version writes only if the record has that version; with `absent`, only if there is
 *   no record. Of several writers with the same expectation, in any number of processes, exactly one succeeds.
 * - R3 `delete` with an expected version deletes only if the record has that version.
 * - R4 No two writes to a store return the same version, even if a record is deleted and created again.
 * - R5 `list` returns the records of one namespace and one tenant in ascending order of their keys. With
 *   `allTenants` it returns those of all tenants in ascending order of tenant and key, those of no tenant first.
 *   Each record that exists from the first page to the last is on exactly one page, whatever is written between two
 *   pages.
 * - R6 `due` returns the records of all tenants whose `dueAt` is at most `now`, the earliest first. `nextDueAt`
 *   returns the earliest `dueAt` of a namespace, past or future, or the earliest after a given time.
 * - R7 An invalid namespace, key, tenant, version, time, limit or cursor throws `invalid_argument`, a value that is
 *   not JSON throws `not_json`, and a value larger than `maxRecordBytes` throws `too_large`. Nothing is stored
 *   then.
 * - R8 Records of different namespaces and tenants are independent of each other.
 * - R9 `Store.onChange` announces every write and deletion of this process as `record`, with the namespace.
 * - R10 `put` with `maxRecords` creates a record only while its tenant has fewer records in the namespace, and
 *   otherwise returns a conflict with `isFull`. This also holds if several processes write at once. An existing
 *   record can always be replaced.
 *
 * @advanced
 */
export interface Records {
  get(key: RecordKey): Promise<StoredRecord | undefined>;
  put(record: RecordDraft, expected: ExpectedVersion, maxRecords?: number): Promise<RecordWrite>;
  delete(key: RecordKey, expected: number): Promise<RecordDeletion>;
  list(query: RecordQuery): Promise<RecordPage>;
  /** R6: returns the records that are due. `limit` is the maximum number of records. Default: 100. */
  due(namespace: string, now: number, limit?: number): Promise<readonly StoredRecord[]>;
  /** R6: returns the earliest `dueAt` of the namespace. With `after`, only times after this one count. */
  nextDueAt(namespace: string, after?: number): Promise<number | undefined>;
}
