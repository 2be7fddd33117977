import {
  checkEntry,
  type ApplyOptions,
  type EntryQuery,
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
import { batchChanges } from "../codec/entry-batch.ts";
import { sessionExists } from "../session-cursor.ts";
import { checkWhenAt, missingSession } from "../session-scope.ts";
import { isWithin } from "../sql/session-rows.ts";
import type { Queries } from "./db/queries.ts";
import type { Tables } from "./db/tables.ts";
import type { Collector } from "./retention/collector.ts";
import { deleteUnnamed } from "./retention/unnamed-sessions.ts";
import type { EntryRows } from "./rows/entry-rows.ts";
import { findUnderWay } from "./rows/run-list.ts";
import { findSession, listSessions, sessionSummary } from "./rows/session-rows.ts";
import { sessionLock } from "../sql/session-rows.ts";
import type { SessionChanges } from "./session-changes.ts";

const deleteWithWorkers = `UPDATE {sessions} SET session_id = NULL WHERE session_id = $1 OR (${isWithin("$1")})`;
const noOwner: SessionOwner = { tenantId: null, userId: null };

export interface PostgresSessionsOptions {
  readonly tables: Tables;
  readonly collector: Collector;
  readonly entries: EntryRows;
  readonly changes: SessionChanges;
}

export class PostgresSessions implements Sessions {
  readonly #tables: Tables;
  readonly #collector: Collector;
  readonly #entries: EntryRows;
  readonly #changes: SessionChanges;

  constructor({ tables, collector, entries, changes }: PostgresSessionsOptions) {
    this.#tables = tables;
    this.#collector = collector;
    this.#entries = entries;
    this.#changes = changes;
  }

  async apply(
    changes: readonly SessionChange[],
    { owner = noOwner, whenIdle, whenNew, whenAt, scope }: ApplyOptions = {},
  ): Promise<RunSummary | undefined> {
    for (const change of changes) if (change.type === "append") checkEntry(change.entry);
    const batches = batchChanges(changes);
    const others = [whenIdle, whenNew, whenAt?.sessionId].flatMap((id) => id ?? []);
    const busy = await this.#tables.database.write(async (transaction) => {
      const ids = [...changes.map(({ sessionId }) => sessionId), ...others];
      await transaction.lock(...ids.map(sessionLock));
      if (scope !== undefined) await refuseForeign(transaction, changes, scope);
      const run = whenIdle === undefined ? undefined : await findUnderWay(transaction, whenIdle);
      if (run !== undefined) return run;
      if (whenNew !== undefined && (await findSession(transaction, whenNew)) !== undefined)
        throw sessionExists(whenNew);
      if (whenAt !== undefined) checkWhenAt(whenAt, await findSession(transaction, whenAt.sessionId));
      await this.#changes.refuseOrphans(transaction, batches);
      await this.#changes.apply(transaction, batches, { owner });
      return undefined;
    });
    // Removed entries may have been the last owners of contents.
    if (busy === undefined && changes.some(({ type }) => type === "remove")) await this.#collector.collect();
    return busy;
  }

  find(sessionId: SessionId, scope?: TenantScope): Promise<SessionSummary | undefined> {
    return sessionSummary(this.#tables.database.statements, sessionId, scope);
  }

  read(sessionId: SessionId, query: EntryQuery = {}): Promise<readonly StoredEntry[]> {
    return this.#tables.database.read(async (queries) => {
      const session = await findSession(queries, sessionId, query.scope);
      // No row has this id, so that the query is checked as for a session that exists.
      return this.#entries.read(queries, session?.id ?? -1, sessionId, query);
    });
  }

  readPath(sessionId: SessionId, query: PathQuery = {}): Promise<SessionPath | undefined> {
    const { leafId: wanted, ofChild = false, from = "root", scope } = query;
    return this.#tables.database.read(async (queries) => {
      const session = await findSession(queries, sessionId, scope);
      if (session === undefined) return wanted === undefined ? { leafId: null, entries: [] } : undefined;
      const leafId = wanted ?? (ofChild ? session.lastId : session.leafId);
      const entries = await this.#entries.path(queries, session.id, leafId, from);
      return entries.length === 0 && wanted !== undefined ? undefined : { leafId, entries };
    });
  }

  async list(query: SessionQuery = {}): Promise<SessionPage> {
    return listSessions(this.#tables.database.statements, query);
  }

  async delete(sessionId: SessionId, scope?: TenantScope): Promise<RunSummary | undefined> {
    const busy = await this.#tables.database.write(async (transaction) => {
      await transaction.lock(sessionLock(sessionId));
      if (scope !== undefined && (await findSession(transaction, sessionId, scope)) === undefined)
        return undefined;
      const run = await findUnderWay(transaction, sessionId);
      if (run === undefined) await transaction.run(deleteWithWorkers, sessionId);
      return run;
    });
    if (busy === undefined) await this.#collector.collect();
    return busy;
  }

  async collect({ unnamedBefore }: { readonly unnamedBefore: number }): Promise<number> {
    const count = await deleteUnnamed(this.#tables, unnamedBefore, sessionLock);
    if (count > 0) await this.#collector.collect();
    return count;
  }
}

async function refuseForeign(
  queries: Queries,
  changes: readonly SessionChange[],
  scope: TenantScope,
): Promise<void> {
  for (const { sessionId } of changes)
    if (!(await isAvailable(queries, sessionId, scope))) throw missingSession(sessionId);
}

/** S6: whether a caller with this scope may use the session, because it is in the scope or does not exist. */
export async function isAvailable(
  queries: Queries,
  sessionId: SessionId,
  scope: TenantScope,
): Promise<boolean> {
  if ((await findSession(queries, sessionId)) === undefined) return true;
  return (await findSession(queries, sessionId, scope)) !== undefined;
}
