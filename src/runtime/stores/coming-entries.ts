import type { SessionId } from "../../kernel/index.ts";

interface Coming {
  readonly sessionId: SessionId;
  readonly entryId: string;
}

/** The entries that a list of changes brings, up to a point in it: each may be the parent of the next, and most are. */
export class ComingEntries {
  #last: Coming | undefined;
  /** Nobody has asked since for one of these but the last. */
  #uncounted: Coming[] = [];
  readonly #ids = new Map<SessionId, Set<string>>();

  has(sessionId: SessionId, entryId: string): boolean {
    if (this.#last?.entryId === entryId && this.#last.sessionId === sessionId) return true;
    for (const each of this.#uncounted) {
      const ids = this.#ids.get(each.sessionId);
      if (ids === undefined) this.#ids.set(each.sessionId, new Set([each.entryId]));
      else ids.add(each.entryId);
    }
    this.#uncounted = [];
    return this.#ids.get(sessionId)?.has(entryId) ?? false;
  }

  add(sessionId: SessionId, entryId: string): void {
    this.#last = { sessionId, entryId };
    this.#uncounted.push(this.#last);
  }
}
