import type { JsonValue, RecordPage, StoredRecord } from "../../../kernel/index.ts";
import { tenantOf, tenantText } from "../codec/stored-run.ts";
import { recordCursor, type RecordRange } from "../record-check.ts";

export interface RecordRow {
  readonly version: number;
  readonly namespace: string;
  readonly tenant: string;
  readonly key: string;
  readonly dueAt: number | null;
  readonly body: string;
}

/** The character after the last printable one. A key that starts with the prefix is less than the prefix and this. */
const afterPrintable = "\x7f";

export function storedOf({ version, namespace, tenant, key, dueAt, body }: RecordRow): StoredRecord {
  return { namespace, key, tenantId: tenantOf(tenant), value: JSON.parse(body) as JsonValue, dueAt, version };
}

/**
 * Returns the parameters of a query for a page of records: namespace, first key, end of the keys, key and tenant after which the
 * page starts (or the tenant of the records, if one is wanted), and the number of rows, one more than the page has.
 */
export function pageValues(range: RecordRange): readonly [string, string, string, string, string, number] {
  const { namespace, tenantId, prefix, after, afterTenant, limit } = range;
  const tenant = tenantText(tenantId === undefined ? afterTenant : tenantId);
  return [namespace, prefix, prefix + afterPrintable, after, tenant, limit + 1];
}

/** Returns the page of records that these rows hold. */
export function recordPageOf(rows: readonly RecordRow[], range: RecordRange): RecordPage {
  const records = rows.slice(0, range.limit).map(storedOf);
  return { records, next: rows.length > range.limit ? recordCursor(records.at(-1), range) : null };
}
