import type { JsonValue, RecordKey, Records, StoredRecord } from "../../kernel/index.ts";

/** The namespaces in which channels keep their records. */
export const namespaces = {
  /** Messages that are not answered yet. */
  messages: "channel-messages",
  /** Ids of answered messages, until they expire. */
  seen: "channel-seen",
  /** Questions of runs that wait for an answer. */
  questions: "channel-questions",
  /** Messages that are not answers, such as notifications. */
  outbox: "channel-outbox",
  /** The current session of each sender in each conversation. */
  sessions: "channel-sessions",
  /** Positions of poll loops. */
  cursors: "channel-cursors",
  /** Which process polls and sends. */
  leases: "channel-leases",
  pairings: "channel-pairings",
  /** Pairing codes that wait for the owner. */
  codes: "channel-codes",
  /** What was notified about each run. */
  notified: "channel-notified",
} as const;

/** Reads all records of a namespace whose key starts with a prefix, page by page. */
export async function allRecords(
  records: Records,
  namespace: string,
  prefix = "",
): Promise<readonly StoredRecord[]> {
  const found: StoredRecord[] = [];
  let after: string | undefined;
  do {
    const page = await records.list({
      namespace,
      limit: 500,
      ...(prefix !== "" && { prefix }),
      ...(after !== undefined && { after }),
    });
    found.push(...page.records);
    after = page.next ?? undefined;
  } while (after !== undefined);
  return found;
}

/** Writes a record whatever its version is. */
export async function overwrite(
  records: Records,
  key: RecordKey,
  value: JsonValue,
  dueAt: number | null = null,
): Promise<void> {
  for (;;) {
    const current = await records.get(key);
    const written = await records.put({ ...key, value, dueAt }, current?.version ?? "absent");
    if (written.kind === "stored") return;
  }
}

/** Deletes a record whatever its version is. Returns whether it existed. */
export async function remove(records: Records, key: RecordKey): Promise<boolean> {
  for (;;) {
    const current = await records.get(key);
    if (current === undefined) return false;
    if ((await records.delete(key, current.version)).kind === "deleted") return true;
  }
}
