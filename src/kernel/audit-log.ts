import type { RunId } from "./identity.ts";
import type { JsonObject } from "./json.ts";

/** Who did what: a line of a run's chained log (E1), or an act from outside such as an approval or a top-up. */
export interface AuditEntry {
  readonly runId: RunId | null;
  /** The event's seq within its run; for acts outside any run, the log's own count. */
  readonly seq: number;
  readonly at: number;
  readonly actor: string;
  readonly action: string;
  readonly details: JsonObject;
  /** Covers this entry and the one before. */
  readonly chainHash: string;
}

export type AuditVerdict =
  | { readonly ok: true; readonly entries: number; readonly head: string; readonly keyed: boolean }
  /** The first entry that does not fit its predecessor. */
  | { readonly ok: false; readonly runId: RunId | null; readonly seq: number; readonly problem: string };

/**
 * The run's own event log, read as an audit. An edited, removed or reordered entry is found; a cut tail only against a
 * head kept elsewhere (E1).
 */
export interface AuditLog {
  record(entry: Pick<AuditEntry, "runId" | "actor" | "action" | "details">): Promise<void>;
  read(runId: RunId | null, fromSeq?: number): AsyncIterable<AuditEntry>;
  verify(runId: RunId | null, head?: string): Promise<AuditVerdict>;
}
