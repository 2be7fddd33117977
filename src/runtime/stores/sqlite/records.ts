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
import type { Tables } from "./db/tables.ts";

const columns = "version, namespace, tenant, key, due_at AS dueAt, body";
const ofKey = `SELECT ${columns} FROM records WHERE namespace = ? AND tenant = ? AND key = ?`;

const listTenant = `SELECT ${columns} FROM records
  WHERE namespace = ?1 AND key >= ?2 AND key < ?3 AND key > ?4 AND tenant = ?5 ORDER BY key LIMIT ?6`;
const listAll = `SELECT ${columns} FROM records
  WHERE namespace = ?1 AND key >= ?2 AND key < ?3 AND (tenant, key) > (?5, ?4) ORDER BY tenant, key LIMIT ?6`;
const listDue = `SELECT ${columns} FROM records WHERE namespace = ? AND due_at <= ? ORDER BY due_at, version LIMIT ?`;

export class SqliteRecords implements Records {
  readonly #tables: Tables;

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  async get(key: RecordKey): Promise<StoredRecord | undefined> {
    const place = recordPlace(key);
    return this.#tables.read(() => this.#current(place));
  }

  async put(draft: RecordDraft, expected: ExpectedVersion): Promise<RecordWrite> {
    const record = recordText(draft);
    const version = expectedVersion(expected);
    return this.#tables.write<RecordWrite>({
      bytes: record.body.length,
      apply: () => {
        const current = this.#current(record);
        if ((current?.version ?? "absent") !== version) return { kind: "conflict", current };
        this.#deleteNow(current);
        const { namespace, tenantId, key, dueAt, body } = record;
        const tenant = tenantText(tenantId);
        const stored = this.#tables.database.insert(
          "INSERT INTO records (namespace, tenant, key, due_at, body) VALUES (?, ?, ?, ?, ?)",
          namespace,
          tenant,
          key,
          dueAt,
          body,
        );
        return { kind: "stored", version: stored };
      },
      committed: ({ kind }) => {
        if (kind === "stored") this.#tables.announce({ kind: "record", namespace: record.namespace });
      },
    });
  }

  async delete(key: RecordKey, expected: number): Promise<RecordDeletion> {
    const place = recordPlace(key);
    const version = deletedVersion(expected);
    return this.#tables.write<RecordDeletion>({
      apply: () => {
        const current = this.#current(place);
        if (current?.version !== version) return { kind: "conflict", current };
        this.#deleteNow(current);
        return { kind: "deleted" };
      },
      committed: ({ kind }) => {
        if (kind === "deleted") this.#tables.announce({ kind: "record", namespace: place.namespace });
      },
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
    const row = await this.#tables.read(() =>
      this.#tables.database.get<{ readonly dueAt: number }>(
        "SELECT due_at AS dueAt FROM records WHERE namespace = ? AND due_at > ? ORDER BY due_at LIMIT 1",
        namespace,
        after ?? -1,
      ),
    );
    return row?.dueAt;
  }

  #current({ namespace, tenantId, key }: RecordPlace): StoredRecord | undefined {
    const row = this.#tables.database.get<RecordRow>(ofKey, namespace, tenantText(tenantId), key);
    return row === undefined ? undefined : storedOf(row);
  }

  async #rows(sql: string, ...values: readonly (string | number)[]): Promise<readonly RecordRow[]> {
    return this.#tables.read(() => this.#tables.database.all<RecordRow>(sql, ...values));
  }

  /** R4: a write deletes the row and inserts another one, because the id of a row is the version of its record. */
  #deleteNow(record: StoredRecord | undefined): void {
    if (record !== undefined)
      this.#tables.database.run("DELETE FROM records WHERE version = ?", record.version);
  }
}
