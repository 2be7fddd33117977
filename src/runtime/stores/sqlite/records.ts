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
import { tenantOf, tenantText } from "./db/run-row.ts";
import type { Tables } from "./db/tables.ts";

interface RecordRow {
  readonly version: number;
  readonly namespace: string;
  readonly tenant: string;
  readonly key: string;
  readonly dueAt: number | null;
  readonly body: string;
}

const columns = "version, namespace, tenant, key, due_at AS dueAt, body";
const ofKey = `SELECT ${columns} FROM records WHERE namespace = ? AND tenant = ? AND key = ?`;
/** The character after the last printable one. A key that starts with the prefix is less than the prefix and this. */
const afterPrintable = "\x7f";

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
    });
  }

  async list(query: RecordQuery): Promise<RecordPage> {
    const { namespace, tenantId, prefix, after, limit } = recordRange(query);
    const found = await this.#all(
      `SELECT ${columns} FROM records WHERE namespace = ? AND tenant = ? AND key >= ? AND key > ? AND key < ?
       ORDER BY key LIMIT ?`,
      namespace,
      tenantText(tenantId),
      prefix,
      after,
      prefix + afterPrintable,
      limit + 1,
    );
    const records = found.slice(0, limit);
    return { records, next: found.length > limit ? (records.at(-1)?.key ?? null) : null };
  }

  async due(namespace: string, now: number, limit?: number): Promise<readonly StoredRecord[]> {
    return this.#all(
      `SELECT ${columns} FROM records WHERE namespace = ? AND due_at <= ? ORDER BY due_at, version LIMIT ?`,
      recordNamespace(namespace),
      recordTime("now", now),
      recordLimit(limit),
    );
  }

  async nextDueAt(namespace: string): Promise<number | undefined> {
    recordNamespace(namespace);
    const row = await this.#tables.read(() =>
      this.#tables.database.get<{ readonly dueAt: number }>(
        "SELECT due_at AS dueAt FROM records WHERE namespace = ? AND due_at IS NOT NULL ORDER BY due_at LIMIT 1",
        namespace,
      ),
    );
    return row?.dueAt;
  }

  #current({ namespace, tenantId, key }: RecordPlace): StoredRecord | undefined {
    const row = this.#tables.database.get<RecordRow>(ofKey, namespace, tenantText(tenantId), key);
    return row === undefined ? undefined : storedOf(row);
  }

  async #all(sql: string, ...values: (string | number)[]): Promise<StoredRecord[]> {
    const rows = await this.#tables.read(() => this.#tables.database.all<RecordRow>(sql, ...values));
    return rows.map(storedOf);
  }

  /** R4: a write deletes the row and inserts another one, because the id of a row is the version of its record. */
  #deleteNow(record: StoredRecord | undefined): void {
    if (record !== undefined)
      this.#tables.database.run("DELETE FROM records WHERE version = ?", record.version);
  }
}

function storedOf({ version, namespace, tenant, key, dueAt, body }: RecordRow): StoredRecord {
  return { namespace, key, tenantId: tenantOf(tenant), value: JSON.parse(body) as JsonValue, dueAt, version };
}
