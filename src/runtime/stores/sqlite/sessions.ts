import {
  checkEntry,
  type ApplyOptions,
  type EntryQuery,
  type MaybePromise,
  type PathQuery,
  type RunId,
  type RunSummary,
  type SessionChange,
  type SessionEntry,
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
import { sessionExists } from "../session-cursor.ts";
import { batchChanges, type BatchedChange, type EntryName } from "../codec/entry-batch.ts";
import { isWithin } from "../sql/session-rows.ts";
import type { Tables } from "./db/tables.ts";
import type { Collector } from "./retention/collector.ts";
import { deleteUnnamed } from "./retention/unnamed-sessions.ts";
import type { EntryContents } from "./rows/entry-contents.ts";
import { EntryRows } from "./rows/entry-rows.ts";
import type { RunList } from "./rows/run-list.ts";
import { checkWhenAt, missingSession } from "../session-scope.ts";
import { SessionRows } from "./rows/session-rows.ts";
import { SessionChanges, type ChangeSource, type Precondition } from "./session-changes.ts";

const deleteWithWorkers = `UPDATE sessions SET session_id = NULL WHERE session_id = ?1 OR (${isWithin("?1")})`;
const noOwner: SessionOwner = { tenantId: null, userId: null };

export class SqliteSessions implements Sessions {
  readonly #tables: Tables;
  readonly #collector: Collector;
  readonly #runs: RunList;
  readonly #rows: SessionRows;
  readonly #entries: EntryRows;
  readonly #changes: SessionChanges;

  constructor(tables: Tables, collector: Collector, runs: RunList, contents: EntryContents) {
    this.#tables = tables;
    this.#collector = collector;
    this.#runs = runs;
    this.#rows = new SessionRows(tables.database);
    this.#entries = new EntryRows(tables.database, contents);
    this.#changes = new SessionChanges({
      database: tables.database,
      rows: this.#rows,
      entries: this.#entries,
      contents,
    });
  }

  async apply(
    changes: readonly SessionChange[],
    { owner = noOwner, whenIdle, whenNew, whenAt, scope }: ApplyOptions = {},
  ): Promise<RunSummary | undefined> {
    for (const change of changes) if (change.type === "append") checkEntry(change.entry);
    const batches = batchChanges(changes);
    const busy = await this.#tables.write({
      apply: () => {
        if (scope !== undefined) this.#refuseForeign(changes, scope);
        const run = whenIdle === undefined ? undefined : this.#runs.findUnderWay(whenIdle);
        if (run !== undefined) return run;
        if (whenNew !== undefined && this.#rows.find(whenNew) !== undefined) throw sessionExists(whenNew);
        if (whenAt !== undefined) checkWhenAt(whenAt, this.#rows.find(whenAt.sessionId));
        this.refuseOrphans(batches);
        this.#changes.apply(batches, { owner });
        return undefined;
      },
    });
    // Removed entries may have been the last owners of contents.
    if (busy === undefined && changes.some(({ type }) => type === "remove")) await this.#collector.collect();
    return busy;
  }

  #refuseForeign(changes: readonly SessionChange[], scope: TenantScope): void {
    for (const { sessionId } of changes)
      if (!this.isAvailableNow(sessionId, scope)) throw missingSession(sessionId);
  }

  async find(sessionId: SessionId, scope?: TenantScope): Promise<SessionSummary | undefined> {
    return this.#tables.read(() => this.#rows.summary(sessionId, scope));
  }

  read(sessionId: SessionId, query: EntryQuery = {}): MaybePromise<readonly StoredEntry[]> {
    return this.#tables.read(() =>
      this.#tables.database.transaction("DEFERRED", () => {
        const session = this.#rows.find(sessionId, query.scope);
        // No row has this id, so that the query is checked as for a session that exists.
        return this.#entries.read(session?.id ?? -1, sessionId, query);
      }),
    );
  }

  readPath(sessionId: SessionId, query: PathQuery = {}): MaybePromise<SessionPath | undefined> {
    return this.#tables.read(() =>
      this.#tables.database.transaction("DEFERRED", () => this.#readPath(sessionId, query)),
    );
  }

  #readPath(
    sessionId: SessionId,
    { leafId: wanted, ofChild = false, from = "root", scope }: PathQuery,
  ): SessionPath | undefined {
    const session = this.#rows.find(sessionId, scope);
    if (session === undefined) return wanted === undefined ? { leafId: null, entries: [] } : undefined;
    const leafId = wanted ?? (ofChild ? session.lastId : session.leafId);
    const entries = this.#entries.path(session.id, leafId, from);
    return entries.length === 0 && wanted !== undefined ? undefined : { leafId, entries };
  }

  async list(query: SessionQuery = {}): Promise<SessionPage> {
    return this.#tables.read(() => this.#rows.list(query));
  }

  async delete(sessionId: SessionId, scope?: TenantScope): Promise<RunSummary | undefined> {
    const busy = await this.#tables.write({
      apply: () => {
        if (scope !== undefined && this.#rows.find(sessionId, scope) === undefined) return undefined;
        const run = this.#runs.findUnderWay(sessionId);
        if (run === undefined) this.#tables.database.run(deleteWithWorkers, sessionId);
        return run;
      },
    });
    if (busy === undefined) await this.#collector.collect();
    return busy;
  }

  async collect({ unnamedBefore }: { readonly unnamedBefore: number }): Promise<number> {
    const count = await deleteUnnamed(this.#tables, unnamedBefore);
    if (count > 0) await this.#collector.collect();
    return count;
  }

  /**
   * Returns `count` entries from this one on, without those that were removed. The journal uses it to decode commits.
   */
  findEntries(sessionId: SessionId, name: EntryName, count: number): readonly SessionEntry[] {
    return this.#entries.find(sessionId, name, count);
  }

  /** S6: whether a caller with this scope may use the session, because it is in the scope or does not exist. */
  isAvailableNow(sessionId: SessionId, scope: TenantScope): boolean {
    return this.#rows.find(sessionId) === undefined || this.#rows.find(sessionId, scope) !== undefined;
  }

  /** See `SessionChanges.refuseOrphans`. Call inside the journal's transaction. */
  refuseOrphans(changes: readonly BatchedChange[]): Precondition | undefined {
    return this.#changes.refuseOrphans(changes);
  }

  /** Applies the session changes of a commit, inside its transaction. */
  applyNow(changes: readonly BatchedChange[], source: ChangeSource): void {
    this.#changes.apply(changes, source);
  }

  /** Removes the entries of a run that are not visible, inside the transaction that deletes the run. */
  removeHiddenNow(sessionId: SessionId, runId: RunId): void {
    this.#changes.removeHidden(sessionId, runId);
  }
}
