import type {
  ExpectedVersion,
  JsonValue,
  RecordDeletion,
  RecordDraft,
  RecordKey,
  RecordPage,
  RecordQuery,
  Records,
  RecordWrite,
  StoredRecord,
} from "../../../kernel/index.ts";
import { tenantOf, tenantText } from "../codec/stored-run.ts";
import {
  deletedVersion,
  expectedVersion,
  recordCursor,
  recordLimit,
  recordNamespace,
  recordPlace,
  recordRange,
  recordText,
  recordTime,
  type RecordPlace,
  type RecordRange,
  type RecordText,
} from "../record-check.ts";
import type { StateChange } from "../state-changes.ts";
import type { SqlTables } from "./tables.ts";
import { all, announce, get, lock, run, type Value, type Work } from "./work.ts";

interface RecordRow {
  readonly version: number;
  readonly namespace: string;
  readonly tenant: string;
  readonly key: string;
  readonly dueAt: number | null;
  readonly body: string;
}

const full: RecordWrite = Object.freeze({ kind: "conflict", current: undefined, isFull: true });

/**
 * The character after the last printable one. Every key that starts with a prefix is less than the prefix followed
 * by this character.
 */
const afterPrintable = "\x7f";

const columns = `version, namespace, tenant, key, due_at AS "dueAt", body`;
const ofKey = `SELECT ${columns} FROM {records} WHERE namespace = $1 AND tenant = $2 AND key = $3`;
const insertRecord = `INSERT INTO {records} (namespace, tenant, key, due_at, body) VALUES ($1, $2, $3, $4, $5) RETURNING version`;

const countTenant = `SELECT CAST(count(*) AS INTEGER) AS count FROM {records} WHERE namespace = $1 AND tenant = $2`;
const listTenant = `SELECT ${columns} FROM {records}
  WHERE namespace = $1 AND key >= $2 AND key < $3 AND key > $4 AND tenant = $5 ORDER BY key LIMIT $6`;
const listAll = `SELECT ${columns} FROM {records}
  WHERE namespace = $1 AND key >= $2 AND key < $3 AND (tenant, key) > ($5, $4) ORDER BY tenant, key LIMIT $6`;
const listDue = `SELECT ${columns} FROM {records} WHERE namespace = $1 AND due_at <= $2 ORDER BY due_at, version LIMIT $3`;
const nextDue = `SELECT due_at AS "dueAt" FROM {records} WHERE namespace = $1 AND due_at > $2 ORDER BY due_at LIMIT 1`;

export class SqlRecords implements Records {
  readonly #tables: SqlTables;

  constructor(tables: SqlTables) {
    this.#tables = tables;
  }

  async get(key: RecordKey): Promise<StoredRecord | undefined> {
    const place = recordPlace(key);
    return this.#tables.query(() => current(place));
  }

  async put(draft: RecordDraft, expected: ExpectedVersion, maxRecords?: number): Promise<RecordWrite> {
    const record = recordText(draft);
    const version = expectedVersion(expected);
    const most = maxRecords === undefined ? undefined : recordLimit(maxRecords);
    return this.#tables.transact(() => put(record, version, most), record.body.length);
  }

  async delete(key: RecordKey, expected: number): Promise<RecordDeletion> {
    const place = recordPlace(key);
    const version = deletedVersion(expected);
    return this.#tables.transact(() => deleteRecord(place, version));
  }

  async list(query: RecordQuery): Promise<RecordPage> {
    const range = recordRange(query);
    const sql = range.tenantId === undefined ? listAll : listTenant;
    const rows = await this.#rows(sql, ...pageValues(range));
    const records = rows.slice(0, range.limit).map(storedOf);
    return { records, next: rows.length > range.limit ? recordCursor(records.at(-1), range) : null };
  }

  async due(namespace: string, now: number, limit?: number): Promise<readonly StoredRecord[]> {
    const values = [recordNamespace(namespace), recordTime("now", now), recordLimit(limit)] as const;
    return (await this.#rows(listDue, ...values)).map(storedOf);
  }

  async nextDueAt(namespace: string, after?: number): Promise<number | undefined> {
    recordNamespace(namespace);
    if (after !== undefined) recordTime("after", after);
    const row = await this.#tables.query(() =>
      get<{ readonly dueAt: number }>(nextDue, namespace, after ?? -1),
    );
    return row?.dueAt;
  }

  async #rows(sql: string, ...values: readonly Value[]): Promise<readonly RecordRow[]> {
    return this.#tables.query(() => all<RecordRow>(sql, ...values));
  }
}

/**
 * R4: writes a record. It deletes the row and inserts another one, because the id of a row is the version of its
 * record.
 */
function* put(
  record: ReturnType<typeof recordText>,
  expected: ExpectedVersion,
  maxRecords: number | undefined,
): Work<RecordWrite> {
  const now = yield* lockedRecord(record);
  if ((now?.version ?? "absent") !== expected) return { kind: "conflict", current: now };
  if (now !== undefined) yield* remove(now);
  else if (maxRecords !== undefined && (yield* lockedCount(record)) >= maxRecords) return full;
  const version = yield* insert(record);
  yield* announce({ kind: "record", namespace: record.namespace }, { everywhere: false });
  return { kind: "stored", version };
}

function* deleteRecord(place: RecordPlace, expected: number): Work<RecordDeletion> {
  const now = yield* lockedRecord(place);
  if (now?.version !== expected) return { kind: "conflict", current: now };
  yield* remove(now);
  yield* announce({ kind: "record", namespace: place.namespace }, { everywhere: false });
  return { kind: "deleted" };
}

/** L19: returns the name of the lock of the record with a state. */
export function stateLock({ place }: StateChange): string {
  return recordLock(recordPlace(place));
}

/** L19: writes or removes the state of a key, in the transaction of a commit that has the lock `stateLock`. */
export function* changeState({ place, value }: StateChange): Work<void> {
  const now = yield* current(recordPlace(place));
  if (now !== undefined) yield* remove(now);
  if (value !== undefined) yield* insert(recordText({ ...place, value }));
  yield* announce({ kind: "record", namespace: place.namespace }, { everywhere: false });
}

function recordLock({ namespace, tenantId, key }: RecordPlace): string {
  return `record ${namespace} ${tenantText(tenantId)} ${key}`;
}

/** Returns the version of the new record. */
function* insert({ namespace, tenantId, key, dueAt, body }: RecordText): Work<number> {
  const values = [namespace, tenantText(tenantId), key, dueAt, body];
  const row = yield* get<{ readonly version: number }>(insertRecord, ...values);
  return (row as { readonly version: number }).version;
}

/** R2: returns the record, after all earlier writers of its key have committed. */
function* lockedRecord(place: RecordPlace): Work<StoredRecord | undefined> {
  yield* lock(recordLock(place));
  return yield* current(place);
}

/** R10: returns how many records a tenant has in a namespace, after all earlier writers have committed. */
function* lockedCount({ namespace, tenantId }: RecordPlace): Work<number> {
  const tenant = tenantText(tenantId);
  yield* lock(`records ${namespace} ${tenant}`);
  const row = yield* get<{ readonly count: number }>(countTenant, namespace, tenant);
  return row?.count ?? 0;
}

function* current({ namespace, tenantId, key }: RecordPlace): Work<StoredRecord | undefined> {
  const row = yield* get<RecordRow>(ofKey, namespace, tenantText(tenantId), key);
  return row === undefined ? undefined : storedOf(row);
}

function remove({ version }: StoredRecord): Work<number> {
  return run("DELETE FROM {records} WHERE version = $1", version);
}

function storedOf({ version, namespace, tenant, key, dueAt, body }: RecordRow): StoredRecord {
  return { namespace, key, tenantId: tenantOf(tenant), value: JSON.parse(body) as JsonValue, dueAt, version };
}

/**
 * Returns the parameters of a query for a page of records. They are the namespace, the first key, the end of the
 * keys, the key and tenant after which the page starts (or the tenant of the records, if one is wanted), and the
 * number of rows, which is one more than the page has.
 */
function pageValues(range: RecordRange): readonly Value[] {
  const { namespace, tenantId, prefix, after, afterTenant, limit } = range;
  const tenant = tenantText(tenantId === undefined ? afterTenant : tenantId);
  return [namespace, prefix, prefix + afterPrintable, after, tenant, limit + 1];
}
