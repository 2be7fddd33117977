import {
  Fault,
  batchEntryId,
  type SessionChange,
  type SessionEntry,
  type SessionId,
} from "../../kernel/index.ts";

/**
 * N1: throws `not_found` if a change has an entry whose parent is neither in its session nor earlier in the list.
 * `stands` tells whether a session has an entry.
 */
export function refuseOrphans(
  changes: readonly SessionChange[],
  stands: (sessionId: SessionId, entryId: string) => boolean,
): void {
  let coming: ComingEntries | undefined;
  for (let index = 0; index < changes.length; index++) {
    const change = changes[index] as SessionChange;
    const first = firstOf(change);
    if (first === undefined || first.parentId === null) continue;
    const { sessionId } = change;
    coming ??= new ComingEntries(changes);
    if (coming.has(index, sessionId, first.parentId) || stands(sessionId, first.parentId)) continue;
    throw orphaned(sessionId, first);
  }
}

/** Returns the entry whose parent must exist. `undefined` if the change adds no entry, or adds it under the leaf. */
function firstOf(change: SessionChange): Pick<SessionEntry, "id" | "parentId"> | undefined {
  if (change.type === "append") return change.atLeaf === true ? undefined : change.entry;
  if (change.type !== "say" || change.batch.messages.length === 0) return undefined;
  return { id: batchEntryId(change.batch, 0), parentId: change.batch.parentId };
}

/** Returns the ids of all entries that a change adds. */
function idsIn(change: SessionChange): readonly string[] {
  if (change.type === "append") return [change.entry.id];
  return change.type === "say"
    ? change.batch.messages.map((_each, index) => batchEntryId(change.batch, index))
    : [];
}

export function orphaned(
  sessionId: SessionId,
  { id, parentId }: Pick<SessionEntry, "id" | "parentId">,
): Fault {
  return new Fault(
    "not_found",
    `entry ${id} names a parent that session ${sessionId} does not have: ${parentId}`,
  );
}

/** The entries that a list of changes adds. Most often the parent of an entry is the entry of the change before it. */
class ComingEntries {
  readonly #changes: readonly SessionChange[];
  /**
   * Ids of the entries of the first `#counted` changes. Filled when `has` is first asked for an entry of an earlier
   * change.
   */
  #ids: Map<SessionId, Set<string>> | undefined;
  #counted = 0;

  constructor(changes: readonly SessionChange[]) {
    this.#changes = changes;
  }

  /** Whether one of the first `count` changes adds the entry. */
  has(count: number, sessionId: SessionId, entryId: string): boolean {
    const before = this.#changes[count - 1];
    if (before?.type === "append" && before.entry.id === entryId && before.sessionId === sessionId)
      return true;
    const known = (this.#ids ??= new Map<SessionId, Set<string>>());
    for (; this.#counted < count; this.#counted++) {
      const change = this.#changes[this.#counted];
      if (change === undefined) continue;
      let ids = known.get(change.sessionId);
      if (ids === undefined) known.set(change.sessionId, (ids = new Set()));
      for (const id of idsIn(change)) ids.add(id);
    }
    return known.get(sessionId)?.has(entryId) ?? false;
  }
}
