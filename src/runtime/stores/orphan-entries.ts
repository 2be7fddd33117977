import { Fault, type SessionChange, type SessionEntry, type SessionId } from "../../kernel/index.ts";

/**
 * N1: refuses a list of changes with an entry whose parent is neither in its session nor comes before it in the list. `stands`: whether
 * a session has an entry.
 */
export function refuseOrphans(
  changes: readonly SessionChange[],
  stands: (sessionId: SessionId, entryId: string) => boolean,
): void {
  const coming = new ComingEntries(changes);
  for (const [index, change] of changes.entries()) {
    if (change.type !== "append" || change.atLeaf === true) continue;
    const { sessionId, entry } = change;
    const { parentId } = entry;
    if (parentId === null || coming.has(index, sessionId, parentId) || stands(sessionId, parentId)) continue;
    throw orphaned(sessionId, entry);
  }
}

export function orphaned(sessionId: SessionId, { id, parentId }: SessionEntry): Fault {
  return new Fault(
    "not_found",
    `entry ${id} names a parent that session ${sessionId} does not have: ${parentId}`,
  );
}

/** The entries that a list of changes brings: each may be the parent of the next, and most are. */
class ComingEntries {
  readonly #changes: readonly SessionChange[];
  /** Of the first so many changes, counted when it was first asked for another than the one before. */
  #ids: Map<SessionId, Set<string>> | undefined;
  #counted = 0;

  constructor(changes: readonly SessionChange[]) {
    this.#changes = changes;
  }

  /** Whether one of the first `count` changes brings it. */
  has(count: number, sessionId: SessionId, entryId: string): boolean {
    const before = this.#changes[count - 1];
    if (before?.type === "append" && before.entry.id === entryId && before.sessionId === sessionId)
      return true;
    const idsIn = (this.#ids ??= new Map<SessionId, Set<string>>());
    for (; this.#counted < count; this.#counted++) {
      const change = this.#changes[this.#counted];
      if (change?.type !== "append") continue;
      const ids = idsIn.get(change.sessionId);
      if (ids === undefined) idsIn.set(change.sessionId, new Set([change.entry.id]));
      else ids.add(change.entry.id);
    }
    return idsIn.get(sessionId)?.has(entryId) ?? false;
  }
}
