import type { SessionChange, SessionEntry, SessionId } from "../../../kernel/index.ts";
import { isBatch, nameOf, type EntryName, type EntryBatch, type BatchedChange } from "./entry-batch.ts";
import type { RunKey } from "./stored-run.ts";
import type { StoredChange } from "./stored-commit.ts";

type Run = Pick<RunKey, "runId" | "agentId" | "sessionId">;

/**
 * Reads up to `count` successive entries of a session, starting with `first`. Entries that were removed in the
 * meantime are left out.
 */
export type FindEntries = (sessionId: SessionId, first: EntryName, count: number) => readonly SessionEntry[];

/** Names successive entries of a session. */
export interface NamedEntries {
  readonly sessionId: SessionId;
  readonly first: EntryName;
  readonly count: number;
}

/** Returns the entries that stored changes name, for a store that reads them before it decodes the changes. */
export function entriesNamedIn(changes: readonly StoredChange[], run: Run): readonly NamedEntries[] {
  return changes.flatMap((change) => (change.type === undefined ? [namedBy(change, run)] : []));
}

function namedBy(change: Extract<StoredChange, { readonly type?: undefined }>, run: Run): NamedEntries {
  const { sessionId = run.sessionId, count = 1 } = change;
  const first = nameOf("own" in change ? `${run.runId}/${change.own}` : change.entryId);
  return { sessionId, first, count };
}

export function encodeChange(change: BatchedChange, run: Run): StoredChange {
  return isBatch(change) ? encodeBatch(change, run) : change;
}

export function decodeChange(change: StoredChange, run: Run, find: FindEntries): readonly SessionChange[] {
  if (change.type !== undefined) return [change];
  const { agentId = run.agentId, visibility = "pending" } = change;
  const { sessionId, first, count } = namedBy(change, run);
  return find(sessionId, first, count).map((entry) => ({
    type: "append",
    sessionId,
    agentId,
    entry,
    visibility,
  }));
}

function encodeBatch({ first, rests }: EntryBatch, run: Run): StoredChange {
  const { entry, sessionId, agentId, visibility } = first;
  return {
    ...(sessionId !== run.sessionId && { sessionId }),
    ...(agentId !== run.agentId && { agentId }),
    ...(visibility !== "pending" && { visibility }),
    ...(rests.length > 1 && { count: rests.length }),
    ...(entry.id.startsWith(`${run.runId}/`)
      ? { own: entry.id.slice(run.runId.length + 1) }
      : { entryId: entry.id }),
  };
}
