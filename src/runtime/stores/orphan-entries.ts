import {
  Fault,
  batchEntryId,
  type SessionChange,
  type SessionEntry,
  type SessionId,
} from "../../kernel/index.ts";

/** The entries of a stored session. */
interface StoredIds {
  has(entryId: string): boolean;
  isVisible(entryId: string): boolean;
}

/**
 * N1, N4: throws `not_found` if a change has an entry with an unknown parent, or with a target that is not a
 * visible entry. The parent or the target must be in the stored session or earlier in the list. `find` returns a
 * stored session.
 */
export function refuseOrphans(
  changes: readonly SessionChange[],
  find: (sessionId: SessionId) => StoredIds | undefined,
): void {
  let coming: ComingEntries | undefined;
  for (let index = 0; index < changes.length; index++) {
    const change = changes[index] as SessionChange;
    const { sessionId } = change;
    const first = firstOf(change);
    if (first !== undefined && first.parentId !== null) {
      coming ??= new ComingEntries(changes);
      if (!coming.has(index, sessionId, first.parentId) && find(sessionId)?.has(first.parentId) !== true)
        throw orphaned(sessionId, first);
    }
    const targetId = change.type === "append" ? targetOf(change.entry) : null;
    if (targetId !== null && find(sessionId)?.isVisible(targetId) !== true) {
      const isComing = changes.slice(0, index).some((each) => isVisibleIn(each, sessionId, targetId));
      if (!isComing) throw untargeted(sessionId, targetId);
    }
  }
}

/** N4: returns the id of the entry that an entry of type `leaf` or `label` names. */
export function targetOf(entry: SessionEntry): string | null {
  return entry.type === "leaf" || entry.type === "label" ? entry.targetId : null;
}

function isVisibleIn(change: SessionChange, sessionId: SessionId, entryId: string): boolean {
  if (change.type !== "append" && change.type !== "say") return false;
  return change.visibility === "visible" && change.sessionId === sessionId && idsIn(change).includes(entryId);
}

export function untargeted(sessionId: SessionId, targetId: string): Fault {
  return new Fault(
    "not_found",
    `session ${sessionId} has no visible entry ${targetId}; use one of its own entries`,
  );
}

/** Returns the entry whose parent must exist. `undefined` if the change adds no entry, or adds it under the current entry. */
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

/**
 * The entries that a list of changes adds. In most cases the parent of an entry is the entry of the previous
 * change.
 */
class ComingEntries {
  readonly #changes: readonly SessionChange[];
  /**
   * Ids of the entries of the first `#counted` changes. Filled when `has` first looks for an entry of an earlier
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
