import {
  checkEntry,
  conversationOf,
  isInScope,
  sessionWithin,
  unnamedBy,
  type AgentId,
  type ApplyOptions,
  type EntryQuery,
  type PathCopy,
  type PathQuery,
  type RunId,
  type RunSummary,
  type SessionChange,
  type SessionId,
  type SessionOwner,
  type SessionPage,
  type SessionPath,
  type SessionQuery,
  type Sessions,
  type SessionSummary,
  type StoredEntry,
  type TenantScope,
} from "../../../kernel/index.ts";
import type { MemoryContents } from "./contents.ts";
import { refuseOrphans, untargeted } from "../orphan-entries.ts";
import { labelsInForce, withoutParent } from "../path-copy.ts";
import { checkWhenAt, missingSession } from "../session-scope.ts";
import {
  asciiLower,
  checkEntryLimit,
  comesAfter,
  missingAfter,
  sessionExists,
  sessionCursorOf,
  sessionPageOf,
} from "../session-cursor.ts";
import { summaryOf } from "./run-summary.ts";
import { SessionRow } from "./session-row.ts";
import type { Tables } from "./tables.ts";

const none: readonly StoredEntry[] = [];
const emptyPath: SessionPath = { leafId: null, entries: [] };
const noOwner: SessionOwner = { tenantId: null, userId: null };

/** A session in the list. */
interface Listed {
  readonly sessionId: SessionId;
  readonly row: SessionRow;
  readonly updatedAt: number;
  readonly place: number;
}

export class MemorySessions implements Sessions {
  readonly #rows = new Map<SessionId, SessionRow>();
  readonly #tables: Tables;
  readonly #contents: MemoryContents;
  #created = 0;
  /** All sessions, newest first. `undefined` after a change, until the list is created again. */
  #listed: readonly Listed[] | undefined;

  constructor(tables: Tables, contents: MemoryContents) {
    this.#tables = tables;
    this.#contents = contents;
  }

  /** N6: returns the owner of a session; `undefined` if the session does not exist. */
  ownerOf(sessionId: SessionId): SessionOwner | undefined {
    return this.#rows.get(sessionId)?.owner;
  }

  async apply(
    changes: readonly SessionChange[],
    { owner = noOwner, whenIdle, whenNew, whenAt, copy, scope }: ApplyOptions = {},
  ): Promise<RunSummary | undefined> {
    for (const change of changes) if (change.type === "append") checkEntry(change.entry);
    for (const { sessionId } of changes)
      if (!this.isAvailableNow(sessionId, scope)) throw missingSession(sessionId);
    const busy = whenIdle === undefined ? undefined : this.busyRun(whenIdle);
    if (busy !== undefined) return busy;
    if (whenNew !== undefined && this.#rows.has(whenNew)) throw sessionExists(whenNew);
    if (whenAt !== undefined) checkWhenAt(whenAt, this.#rows.get(whenAt.sessionId));
    if (copy !== undefined) this.#copy(copy, changes, owner, scope);
    this.applyNow(changes, 0, owner);
    return undefined;
  }

  /**
   * N7: adds the session of the copy. Throws before it changes anything, also if a later change of the same call is
   * invalid.
   */
  #copy(
    { from, leafId, to }: PathCopy,
    changes: readonly SessionChange[],
    owner: SessionOwner,
    scope: TenantScope | undefined,
  ): void {
    const origin = this.#find(from, scope);
    if (origin === undefined) throw missingSession(from);
    if (this.#rows.has(to)) throw sessionExists(to);
    const path = origin.path({ leafId });
    if (path === undefined) throw untargeted(from, leafId);
    const { agentId } = origin;
    const row = new SessionRow({ agentId, owner, place: this.#created + 1, at: 0 });
    const ids = new Set(path.entries.map(({ id }) => id));
    const labels = labelsInForce(origin.labels(), leafId, (entryId) => ids.has(entryId));
    for (const entry of [...withoutParent(path.entries), ...labels])
      row.append({ type: "append", sessionId: to, agentId, entry, visibility: "visible" });
    refuseOrphans(changes, (sessionId) => (sessionId === to ? row : this.#rows.get(sessionId)));
    this.#created++;
    this.#rows.set(to, row);
  }

  /**
   * S6: whether a caller with this scope may use the session, because the session is in the scope or does not
   * exist.
   */
  isAvailableNow(sessionId: SessionId, scope: TenantScope | undefined): boolean {
    const row = this.#rows.get(sessionId);
    return row === undefined || isInScope(row.owner, scope);
  }

  /** S6: returns the row of a session. `undefined` if the session does not exist in the scope. */
  #find(sessionId: SessionId, scope: TenantScope | undefined): SessionRow | undefined {
    const row = this.#rows.get(sessionId);
    return row !== undefined && isInScope(row.owner, scope) ? row : undefined;
  }

  async find(sessionId: SessionId, scope?: TenantScope): Promise<SessionSummary | undefined> {
    const row = this.#find(sessionId, scope);
    return row === undefined ? undefined : toSummary(sessionId, row);
  }

  read(
    sessionId: SessionId,
    { includeHidden = false, onlyUnseen = false, after, limit, scope }: EntryQuery = {},
  ): readonly StoredEntry[] {
    checkEntryLimit(limit);
    const row = this.#find(sessionId, scope);
    const entries = (onlyUnseen ? row?.unseen() : row?.entries(includeHidden)) ?? none;
    if (after === undefined) return limit === undefined ? entries : entries.slice(0, limit);
    const index = entries.findIndex(({ entry }) => entry.id === after);
    if (index < 0) throw missingAfter(sessionId, after);
    return entries.slice(index + 1, limit === undefined ? undefined : index + 1 + limit);
  }

  readPath(sessionId: SessionId, query: PathQuery = {}): SessionPath | undefined {
    const row = this.#find(sessionId, query.scope);
    if (row !== undefined) return row.path(query);
    return query.leafId === undefined ? emptyPath : undefined;
  }

  async list(query: SessionQuery = {}): Promise<SessionPage> {
    const { after, limit } = sessionCursorOf(query);
    const found: Listed[] = [];
    for (const listed of this.#sorted()) {
      if (found.length > limit) break;
      if (comesAfter(listed, after) && matches(listed, query)) found.push(listed);
    }
    const { shown, next } = sessionPageOf(found, limit);
    return { sessions: shown.map(({ sessionId, row }) => toSummary(sessionId, row)), next };
  }

  async delete(sessionId: SessionId, scope?: TenantScope): Promise<RunSummary | undefined> {
    if (scope !== undefined && this.#find(sessionId, scope) === undefined) return undefined;
    const busy = this.busyRun(sessionId);
    if (busy !== undefined) return busy;
    this.#delete(sessionId);
    const within = sessionWithin(sessionId, "");
    const workers = [...this.#rows.keys()].filter((each) => each.startsWith(within));
    for (const each of workers) this.#delete(each);
    return undefined;
  }

  /** S5: returns a run that has not ended, or has unread mail that may resume it. */
  busyRun(sessionId: SessionId): RunSummary | undefined {
    const run = this.#tables.ofSession
      .get(sessionId)
      ?.find(({ end, mail }) => end === null || mail.length > 0);
    return run === undefined ? undefined : summaryOf(run);
  }

  #sorted(): readonly Listed[] {
    return (this.#listed ??= Array.from(this.#rows, ([sessionId, row]) => {
      const { updatedAt, place } = row;
      return { sessionId, row, updatedAt, place };
    }).toSorted((one, other) => (comesAfter(one, other) ? 1 : -1)));
  }

  #delete(sessionId: SessionId): void {
    this.#rows.delete(sessionId);
    this.#contents.releaseNow({ sessionId });
    this.#listed = undefined;
  }

  async collect({ unnamedBefore }: { readonly unnamedBefore: number }): Promise<number> {
    /** Sessions that may be deleted, by conversation. */
    const over = new Map<SessionId, SessionId[]>();
    const kept = new Set<SessionId>();
    for (const [sessionId, row] of this.#rows) {
      const conversation = conversationOf(sessionId);
      const runId = unnamedBy(conversation);
      if (runId === undefined || kept.has(conversation)) continue;
      const those = over.get(conversation);
      if (this.#tables.ofSession.has(conversation) || row.updatedAt >= unnamedBefore || !row.isOnlyOf(runId))
        kept.add(conversation);
      else if (those === undefined) over.set(conversation, [sessionId]);
      else those.push(sessionId);
    }
    let count = 0;
    for (const [conversation, sessionIds] of over) {
      if (kept.has(conversation)) continue;
      for (const sessionId of sessionIds) this.#delete(sessionId);
      count += sessionIds.length;
    }
    return count;
  }

  /**
   * Applies the session changes of a commit. The journal calls this. It validates the changes before it applies
   * any. `owner` becomes the owner of the sessions that the changes create (N6).
   */
  applyNow(changes: readonly SessionChange[], at: number, owner: SessionOwner): void {
    refuseOrphans(changes, (sessionId) => this.#rows.get(sessionId));
    this.#listed = undefined;
    for (const change of changes) this.#apply(change, at, owner);
  }

  /** Removes the entries of a run that are not visible. Called when the run is deleted. */
  removeHiddenNow(sessionId: SessionId, runId: RunId): void {
    this.#remove(sessionId, (row) => row.remove({ runId }, (visibility) => visibility !== "visible"));
  }

  /** Removes entries from a session, and the session itself if no entry is left. */
  #remove(sessionId: SessionId, remove: (row: SessionRow) => void): void {
    const row = this.#rows.get(sessionId);
    if (row === undefined) return;
    remove(row);
    if (row.size === 0) this.#delete(sessionId);
  }

  #apply(change: SessionChange, at: number, owner: SessionOwner): void {
    switch (change.type) {
      case "append":
        this.#row(change, at, owner).append(change);
        return;
      case "say":
        this.#row(change, at, owner).say(change);
        return;
      case "reveal":
        this.#rows.get(change.sessionId)?.reveal(change);
        return;
      case "remove":
        this.#remove(change.sessionId, (row) => row.remove(change));
    }
  }

  #row(
    { sessionId, agentId }: { readonly sessionId: SessionId; readonly agentId: AgentId },
    at: number,
    { tenantId, userId }: SessionOwner,
  ): SessionRow {
    let row = this.#rows.get(sessionId);
    if (row === undefined) {
      row = new SessionRow({ agentId, owner: { tenantId, userId }, place: ++this.#created, at });
      this.#rows.set(sessionId, row);
    }
    return row;
  }
}

function toSummary(sessionId: SessionId, row: SessionRow): SessionSummary {
  const { agentId, owner, name, title, leafId, size: entries, updatedAt } = row;
  return { sessionId, agentId, ...owner, name, title, leafId, entries, updatedAt };
}

function matches(
  { sessionId, row }: Listed,
  { agentId, under, withWorkers = true, tenantId, userId, text }: SessionQuery,
): boolean {
  const { owner, name, title } = row;
  return (
    (agentId === undefined || row.agentId === agentId) &&
    (under === undefined || sessionId.startsWith(sessionWithin(under, ""))) &&
    (withWorkers || conversationOf(sessionId) === sessionId) &&
    (tenantId === undefined || owner.tenantId === tenantId) &&
    (userId === undefined || owner.userId === userId) &&
    (text === undefined || contains(name, text) || contains(title, text))
  );
}

function contains(name: string | null, text: string): boolean {
  return name !== null && asciiLower(name).includes(asciiLower(text));
}
