import type { SessionId } from "../../kernel/index.ts";

/** The entries that a list of changes brings, up to a point in it: each may be the parent of the next. */
export class ComingEntries {
  readonly #ids = new Map<SessionId, Set<string>>();

  has(sessionId: SessionId, entryId: string): boolean {
    return this.#ids.get(sessionId)?.has(entryId) ?? false;
  }

  add(sessionId: SessionId, entryId: string): void {
    const ids = this.#ids.get(sessionId);
    if (ids === undefined) this.#ids.set(sessionId, new Set([entryId]));
    else ids.add(entryId);
  }
}
