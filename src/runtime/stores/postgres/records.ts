import type {
  ExpectedVersion,
  RecordDeletion,
  RecordDraft,
  RecordKey,
  RecordPage,
  RecordQuery,
  Records,
  RecordWrite,
  StoredRecord,
} from "../../../kernel/index.ts";
import {
  deletedVersion,
  expectedVersion,
  recordLimit,
  recordNamespace,
  recordPlace,
  recordRange,
  recordText,
  recordTime,
  type RecordPlace,
} from "../record-check.ts";
import { tenantText } from "../codec/stored-run.ts";
import { pageValues, recordPageOf, storedOf, type RecordRow } from "../sql/record-row.ts";
import type { Queries, Value } from "./db/queries.ts";
import type { Tables } from "./db/tables.ts";
import type { Transaction } from "./db/transaction.ts";

const columns = `version, namespace, tenant, key, due_at AS "dueAt", body`;
const ofKey = `SELECT ${columns} FROM {records} WHERE namespace = $1 AND tenant = $2 AND key = $3`;
const insertRecord = `INSERT INTO {records} (namespace, tenant, key, due_at, body) VALUES ($1, $2, $3, $4, $5) RETURNING version`;

const listTenant = `SELECT ${columns} FROM {records}
  WHERE namespace = $1 AND key >= $2 AND key < $3 AND key > $4 AND tenant = $5 ORDER BY key LIMIT $6`;
const listAll = `SELECT ${columns} FROM {records}
  WHERE namespace = $1 AND key >= $2 AND key < $3 AND (tenant, key) > ($5, $4) ORDER BY tenant, key LIMIT $6`;
const listDue = `SELECT ${columns} FROM {records} WHERE namespace = $1 AND due_at <= $2 ORDER BY due_at, version LIMIT $3`;
const nextDue = `SELECT due_at AS "dueAt" FROM {records} WHERE namespace = $1 AND due_at > $2 ORDER BY due_at LIMIT 1`;

export class PostgresRecords implements Records {
  readonly #tables: Tables;

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  async get(key: RecordKey): Promise<StoredRecord | undefined> {
    return current(this.#tables.database.statements, recordPlace(key));
  }

  async put(draft: RecordDraft, expected: ExpectedVersion): Promise<RecordWrite> {
    const record = recordText(draft);
    const version = expectedVersion(expected);
    return this.#tables.database.write<RecordWrite>(async (transaction) => {
      const now = await lockedRecord(transaction, record);
      if ((now?.version ?? "absent") !== version) return { kind: "conflict", current: now };
      await remove(transaction, now);
      const { namespace, tenantId, key, dueAt, body } = record;
      const row = await transaction.get<{ readonly version: number }>(
        insertRecord,
        namespace,
        tenantText(tenantId),
        key,
        dueAt,
        body,
      );
      transaction.announce({ kind: "record", namespace }, { everywhere: false });
      return { kind: "stored", version: (row as { readonly version: number }).version };
    });
  }

  async delete(key: RecordKey, expected: number): Promise<RecordDeletion> {
    const place = recordPlace(key);
    const version = deletedVersion(expected);
    return this.#tables.database.write<RecordDeletion>(async (transaction) => {
      const now = await lockedRecord(transaction, place);
      if (now?.version !== version) return { kind: "conflict", current: now };
      await remove(transaction, now);
      transaction.announce({ kind: "record", namespace: place.namespace }, { everywhere: false });
      return { kind: "deleted" };
    });
  }

  async list(query: RecordQuery): Promise<RecordPage> {
    const range = recordRange(query);
    const sql = range.tenantId === undefined ? listAll : listTenant;
    return recordPageOf(await this.#rows(sql, ...pageValues(range)), range);
  }

  async due(namespace: string, now: number, limit?: number): Promise<readonly StoredRecord[]> {
    const values = [recordNamespace(namespace), recordTime("now", now), recordLimit(limit)] as const;
    return (await this.#rows(listDue, ...values)).map(storedOf);
  }

  async nextDueAt(namespace: string, after?: number): Promise<number | undefined> {
    recordNamespace(namespace);
    if (after !== undefined) recordTime("after", after);
    const row = await this.#tables.database.statements.get<{ readonly dueAt: number }>(
      nextDue,
      namespace,
      after ?? -1,
    );
    return row?.dueAt;
  }

  #rows(sql: string, ...values: readonly Value[]): Promise<readonly RecordRow[]> {
    return this.#tables.database.statements.all<RecordRow>(sql, ...values);
  }
}

/** R2: returns the record after all writers of its key that came before have committed. */
async function lockedRecord(transaction: Transaction, place: RecordPlace): Promise<StoredRecord | undefined> {
  await transaction.lock(`record ${place.namespace} ${tenantText(place.tenantId)} ${place.key}`);
  return current(transaction, place);
}

async function current(
  queries: Queries,
  { namespace, tenantId, key }: RecordPlace,
): Promise<StoredRecord | undefined> {
  const row = await queries.get<RecordRow>(ofKey, namespace, tenantText(tenantId), key);
  return row === undefined ? undefined : storedOf(row);
}

/** R4: a write deletes the row and inserts another one, because the id of a row is the version of its record. */
async function remove(queries: Queries, record: StoredRecord | undefined): Promise<void> {
  if (record !== undefined) await queries.run("DELETE FROM {records} WHERE version = $1", record.version);
}
