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
  recordCursor,
  expectedVersion,
  recordLimit,
  recordNamespace,
  recordPlace,
  recordRange,
  recordText,
  recordTime,
  type RecordPlace,
} from "../record-check.ts";
import type { StateChange } from "../state-changes.ts";
import type { Tables } from "./tables.ts";

/** A record whose value is text, so that no caller can change it. */
type MemoryRecord = Omit<StoredRecord, "value"> & { readonly body: string };

const full: RecordWrite = Object.freeze({ kind: "conflict", current: undefined, isFull: true });

export class MemoryRecords implements Records {
  readonly #tables: Pick<Tables, "announce">;
  readonly #records = new Map<string, MemoryRecord>();
  #lastVersion = 0;

  constructor(tables: Pick<Tables, "announce">) {
    this.#tables = tables;
  }

  async get(key: RecordKey): Promise<StoredRecord | undefined> {
    return this.#current(recordPlace(key));
  }

  async put(draft: RecordDraft, expected: ExpectedVersion, maxRecords?: number): Promise<RecordWrite> {
    const record = recordText(draft);
    const most = maxRecords === undefined ? Infinity : recordLimit(maxRecords);
    const address = addressOf(record);
    const version = this.#records.get(address)?.version ?? "absent";
    if (version !== expectedVersion(expected)) return { kind: "conflict", current: this.#current(record) };
    if (version === "absent" && most < Infinity && this.#count(record) >= most) return full;
    this.#records.set(address, { ...record, version: ++this.#lastVersion });
    this.#tables.announce({ kind: "record", namespace: record.namespace });
    return { kind: "stored", version: this.#lastVersion };
  }

  async delete(key: RecordKey, expected: number): Promise<RecordDeletion> {
    const place = recordPlace(key);
    const address = addressOf(place);
    if (this.#records.get(address)?.version !== deletedVersion(expected))
      return { kind: "conflict", current: this.#current(place) };
    this.#records.delete(address);
    this.#tables.announce({ kind: "record", namespace: place.namespace });
    return { kind: "deleted" };
  }

  async list(query: RecordQuery): Promise<RecordPage> {
    const range = recordRange(query);
    const { namespace, tenantId, prefix, after, afterTenant, limit } = range;
    const isAfter = (record: MemoryRecord): boolean =>
      tenantId === undefined
        ? compare(record, { tenantId: afterTenant, key: after }) > 0
        : record.key > after;
    const found = [...this.#records.values()]
      .filter((record) => record.namespace === namespace)
      .filter((record) => tenantId === undefined || record.tenantId === tenantId)
      .filter((record) => record.key.startsWith(prefix) && isAfter(record))
      .toSorted(compare);
    const records = found.slice(0, limit).map(storedOf);
    return { records, next: found.length > limit ? recordCursor(records.at(-1), range) : null };
  }

  async due(namespace: string, now: number, limit?: number): Promise<readonly StoredRecord[]> {
    recordTime("now", now);
    return this.#scheduled(namespace)
      .filter(({ dueAt }) => dueAt <= now)
      .slice(0, recordLimit(limit))
      .map(storedOf);
  }

  async nextDueAt(namespace: string, after?: number): Promise<number | undefined> {
    if (after !== undefined) recordTime("after", after);
    return this.#scheduled(namespace).find(({ dueAt }) => after === undefined || dueAt > after)?.dueAt;
  }

  /** L19: writes or removes the state of a key, with the commit that changes it. */
  changeNow({ place, value }: StateChange): void {
    const address = addressOf(recordPlace(place));
    if (value === undefined) this.#records.delete(address);
    else this.#records.set(address, { ...recordText({ ...place, value }), version: ++this.#lastVersion });
    this.#tables.announce({ kind: "record", namespace: place.namespace });
  }

  /** R10: returns how many records a tenant has in a namespace. */
  #count({ namespace, tenantId }: RecordPlace): number {
    let count = 0;
    for (const record of this.#records.values())
      if (record.namespace === namespace && record.tenantId === tenantId) count++;
    return count;
  }

  /** Returns the records of a namespace that have a due time, earliest first. */
  #scheduled(namespace: string): readonly (MemoryRecord & { readonly dueAt: number })[] {
    recordNamespace(namespace);
    return [...this.#records.values()]
      .filter((record) => record.namespace === namespace)
      .filter((record): record is MemoryRecord & { readonly dueAt: number } => record.dueAt !== null)
      .toSorted((one, other) => one.dueAt - other.dueAt || one.version - other.version);
  }

  #current(place: RecordPlace): StoredRecord | undefined {
    const record = this.#records.get(addressOf(place));
    return record === undefined ? undefined : storedOf(record);
  }
}

type TenantKey = Pick<StoredRecord, "tenantId" | "key">;

/** R5: compares two records: first by tenant, where no tenant comes first, and then by key. */
function compare(one: TenantKey, other: TenantKey): number {
  if (one.tenantId !== other.tenantId)
    return one.tenantId === null || (other.tenantId !== null && one.tenantId < other.tenantId) ? -1 : 1;
  if (one.key === other.key) return 0;
  return one.key < other.key ? -1 : 1;
}

function addressOf({ namespace, tenantId, key }: RecordPlace): string {
  return JSON.stringify([namespace, tenantId, key]);
}

function storedOf({ namespace, key, tenantId, body, dueAt, version }: MemoryRecord): StoredRecord {
  return { namespace, key, tenantId, value: JSON.parse(body) as JsonValue, dueAt, version };
}
