import {
  checkEntry,
  type ApplyOptions,
  type EntryQuery,
  type MaybePromise,
  type PathQuery,
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
import { batchChanges, type BatchedChange } from "../codec/entry-batch.ts";
import { sessionExists } from "../session-cursor.ts";
import { checkWhenAt, missingSession } from "../session-scope.ts";
import type { EntryRows } from "./entry-rows.ts";
import type { SessionChanges } from "./session-changes.ts";
import type { Collector } from "./contents.ts";
import type { RunList } from "./run-list.ts";
import type { SessionCopy } from "./session-copy.ts";
import { findSession, isWithin, listSessions, sessionLock, sessionSummary } from "./session-rows.ts";
import type { SqlTables } from "./tables.ts";
import { UnnamedSessions } from "./unnamed-sessions.ts";
import { lock, run, type Work } from "./work.ts";

const deleteWithWorkers = `UPDATE {sessions} SET session_id = NULL WHERE session_id = $1 OR (${isWithin("$1")})`;
const noOwner: SessionOwner = { tenantId: null, userId: null };

export interface SqlSessionsOptions {
  readonly tables: SqlTables;
  readonly entries: EntryRows;
  readonly changes: SessionChanges;
  readonly copies: SessionCopy;
  readonly list: RunList;
  readonly collector: Collector;
}

export class SqlSessions implements Sessions {
  readonly #tables: SqlTables;
  readonly #entries: EntryRows;
  readonly #changes: SessionChanges;
  readonly #copies: SessionCopy;
  readonly #unnamed: UnnamedSessions;
  readonly #list: RunList;
  readonly #collector: Collector;

  constructor({ tables, entries, changes, copies, list, collector }: SqlSessionsOptions) {
    this.#tables = tables;
    this.#entries = entries;
    this.#changes = changes;
    this.#copies = copies;
    this.#unnamed = new UnnamedSessions(tables);
    this.#list = list;
    this.#collector = collector;
  }

  async apply(
    changes: readonly SessionChange[],
    options: ApplyOptions = {},
  ): Promise<RunSummary | undefined> {
    for (const change of changes) if (change.type === "append") checkEntry(change.entry);
    const batches = batchChanges(changes);
    const busy = await this.#tables.transact(() => this.#apply(changes, batches, options));
    // Removed entries may have been the last owners of contents.
    if (busy === undefined && changes.some(({ type }) => type === "remove")) await this.#collector.collect();
    return busy;
  }

  *#apply(
    changes: readonly SessionChange[],
    batches: readonly BatchedChange[],
    { owner = noOwner, whenIdle, whenNew, whenAt, copy, scope }: ApplyOptions,
  ): Work<RunSummary | undefined> {
    const changed = changes.map(({ sessionId }) => sessionId);
    const others = [whenIdle, whenNew, whenAt?.sessionId, copy?.from, copy?.to].flatMap((id) => id ?? []);
    yield* lock(...[...changed, ...others].map(sessionLock));
    if (scope !== undefined)
      for (const sessionId of changed)
        if (!(yield* isAvailable(sessionId, scope))) throw missingSession(sessionId);
    const busy = whenIdle === undefined ? undefined : yield* this.#list.findUnderWay(whenIdle);
    if (busy !== undefined) return busy;
    if (whenNew !== undefined && (yield* findSession(whenNew)) !== undefined) throw sessionExists(whenNew);
    if (whenAt !== undefined) checkWhenAt(whenAt, yield* findSession(whenAt.sessionId));
    yield* this.#changes.refuseOrphans(batches, copy);
    if (copy !== undefined) yield* this.#copies.copy(copy, owner, scope);
    yield* this.#changes.apply(batches, { owner });
    return undefined;
  }

  async find(sessionId: SessionId, scope?: TenantScope): Promise<SessionSummary | undefined> {
    return this.#tables.query(() => sessionSummary(sessionId, scope));
  }

  read(sessionId: SessionId, query: EntryQuery = {}): MaybePromise<readonly StoredEntry[]> {
    return this.#tables.snapshot(() => this.#read(sessionId, query));
  }

  *#read(sessionId: SessionId, query: EntryQuery): Work<readonly StoredEntry[]> {
    const session = yield* findSession(sessionId, query.scope);
    // No row has this id, so that the query is checked as for a session that exists.
    return yield* this.#entries.read(session?.id ?? -1, sessionId, query);
  }

  readPath(sessionId: SessionId, query: PathQuery = {}): MaybePromise<SessionPath | undefined> {
    return this.#tables.snapshot(() => this.#readPath(sessionId, query));
  }

  *#readPath(
    sessionId: SessionId,
    { leafId: wanted, ofChild = false, from = "root", limit, scope }: PathQuery,
  ): Work<SessionPath | undefined> {
    const session = yield* findSession(sessionId, scope);
    if (session === undefined) return wanted === undefined ? { leafId: null, entries: [] } : undefined;
    const leafId = wanted ?? (ofChild ? session.lastId : session.leafId);
    const entries = yield* this.#entries.path(session.id, leafId, from, limit);
    return entries.length === 0 && wanted !== undefined ? undefined : { leafId, entries };
  }

  async list(query: SessionQuery = {}): Promise<SessionPage> {
    return this.#tables.query(() => listSessions(query));
  }

  async delete(sessionId: SessionId, scope?: TenantScope): Promise<RunSummary | undefined> {
    const busy = await this.#tables.transact(() => this.#delete(sessionId, scope));
    if (busy === undefined) await this.#collector.collect();
    return busy;
  }

  *#delete(sessionId: SessionId, scope: TenantScope | undefined): Work<RunSummary | undefined> {
    yield* lock(sessionLock(sessionId));
    if (scope !== undefined && (yield* findSession(sessionId, scope)) === undefined) return undefined;
    const busy = yield* this.#list.findUnderWay(sessionId);
    if (busy === undefined) yield* run(deleteWithWorkers, sessionId);
    return busy;
  }

  async collect({ unnamedBefore }: { readonly unnamedBefore: number }): Promise<number> {
    const count = await this.#unnamed.delete(unnamedBefore);
    if (count > 0) await this.#collector.collect();
    return count;
  }
}

/** S6: whether a caller with this scope may use the session, because it is in the scope or does not exist. */
export function* isAvailable(sessionId: SessionId, scope: TenantScope): Work<boolean> {
  if ((yield* findSession(sessionId)) === undefined) return true;
  return (yield* findSession(sessionId, scope)) !== undefined;
}
