import type { AgentId, PathCopy, SessionEntry, SessionOwner, TenantScope } from "../../../kernel/index.ts";
import type { Chain } from "../codec/chain.ts";
import { batchChanges, isBatch, nameOf, type EntryBatch, type EntryRest } from "../codec/entry-batch.ts";
import { OwnerKind } from "../codec/owner-kind.ts";
import { untargeted } from "../orphan-entries.ts";
import { labelsInForce, withoutParent } from "../path-copy.ts";
import { sessionExists } from "../session-cursor.ts";
import { missingSession } from "../session-scope.ts";
import type { Dialect } from "./dialect.ts";
import { entriesIn } from "./entry-row.ts";
import type { EntryRows, PathRow } from "./entry-rows.ts";
import { isInScope, scopeValues } from "./run-row.ts";
import type { SessionChanges } from "./session-changes.ts";
import { findSession, insertSession } from "./session-rows.ts";
import { noteBatch, titleOf, type OpenSession } from "./session-state.ts";
import { get, run, type Work } from "./work.ts";

/** Number of rows that one statement copies. */
const rowsPerCopy = 256;

const findOrigin = `SELECT id, agent_id AS "agentId" FROM {sessions} WHERE session_id = $1 AND ${isInScope(2)}`;

interface Origin {
  readonly id: number;
  readonly agentId: AgentId;
}

/**
 * A row of the path. If only some of its entries are on the path, it contains them, because they must be written
 * again.
 */
interface CopiedRow extends PathRow {
  readonly changed: readonly SessionEntry[] | undefined;
}

/** A path that is being copied. */
interface Copying {
  readonly origin: Origin;
  readonly copy: OpenSession;
  /** Place of the last row of the new session. */
  place: number;
}

export interface SessionCopyOptions {
  readonly dialect: Dialect;
  readonly entries: EntryRows;
  readonly changes: SessionChanges;
  readonly chain: Chain;
}

/**
 * N7: copies paths. The database copies unchanged rows, many with one statement; the copies share the large values.
 * Only a row that is partly on the path, and the first row, which loses its parent, are written again.
 */
export class SessionCopy {
  readonly #options: SessionCopyOptions;
  readonly #ownContents: string;

  constructor(options: SessionCopyOptions) {
    this.#options = options;
    const copied = options.dialect.entriesOf("$2", { as: "copy", after: "$3" });
    this.#ownContents = `INSERT INTO {content_owners} (content, kind, owner) SELECT owned.content, owned.kind, copy.id
      FROM {entries} AS copy NOT INDEXED
      JOIN {entries} AS source INDEXED BY entries_by_name
        ON source.session = $1 AND source.stem = copy.stem AND source.number = copy.number
      JOIN {content_owners} AS owned INDEXED BY contents_of_owner
        ON owned.kind = ${OwnerKind.ENTRIES} AND owned.owner = source.id
      WHERE ${copied} AND copy.refs IS NOT NULL ON CONFLICT DO NOTHING`;
  }

  /**
   * Copies a path. Call it inside a transaction that has the locks of both sessions. It throws faults only before
   * the first change.
   */
  *copy(
    { from, leafId, to }: PathCopy,
    { tenantId, userId }: SessionOwner,
    scope: TenantScope | undefined,
  ): Work<void> {
    const { entries, changes } = this.#options;
    const origin = yield* get<Origin>(findOrigin, from, ...scopeValues(scope));
    if (origin === undefined) throw missingSession(from);
    if ((yield* findSession(to)) !== undefined) throw sessionExists(to);
    const path = (yield* entries.rowsTo(origin.id, leafId)).toReversed();
    if (path.length === 0) throw untargeted(from, leafId);
    const rows = yield* this.#copiedRows(path);
    const labels = labelsInForce(yield* entries.labels(origin.id), leafId, pathFilter(path));
    const title = yield* this.#titleOf(path);
    const state = { updatedAt: 0, leafId: null, lastId: null, name: null, title, size: 0 };
    const { agentId } = origin;
    const id = yield* insertSession({ sessionId: to, agentId, tenantId, userId, ...state });
    const copy = { ...state, id, sessionId: to, tenantId, stored: state };
    const copying = { origin, copy, place: this.#options.dialect.placeBefore(id) };
    yield* this.#copyRows(rows, copying);
    for (const each of tellingRows(path)) noteBatch(copy, batchOf(each, copying));
    copying.copy.size = path.reduce((sum, { count }) => sum + count, 0);
    for (const label of labels) yield* this.#insert([label], copying);
    yield* changes.save(copying.copy);
  }

  *#copiedRows(path: readonly PathRow[]): Work<readonly CopiedRow[]> {
    const isChanged = (each: PathRow): boolean =>
      each.count < each.row.count || (each === path[0] && each.parentId !== null);
    const decode = yield* this.#options.entries.decoder(path.filter(isChanged).map(({ row }) => row));
    return path.map((each) => {
      if (!isChanged(each)) return { ...each, changed: undefined };
      const changed = decode(each.row).slice(0, each.count);
      return { ...each, changed: each === path[0] ? withoutParent(changed) : changed };
    });
  }

  /** Returns the title of the session from the messages of the path. Their texts may be large values. */
  *#titleOf(path: readonly PathRow[]): Work<string | null> {
    for (const { row, count } of path) {
      if (row.type !== "message") continue;
      const decode = yield* this.#options.entries.decoder([row]);
      for (const entry of decode(row).slice(0, count)) {
        const title = titleOf(entry);
        if (title !== null) return title;
      }
    }
    return null;
  }

  *#copyRows(rows: readonly CopiedRow[], copying: Copying): Work<void> {
    let same: PathRow[] = [];
    for (const each of rows) {
      if (each.changed === undefined) same.push(each);
      if (each.changed === undefined && same.length < rowsPerCopy) continue;
      yield* this.#copySame(same, copying);
      same = [];
      if (each.changed !== undefined) yield* this.#insert(each.changed, copying);
    }
    yield* this.#copySame(same, copying);
  }

  *#copySame(rows: readonly PathRow[], copying: Copying): Work<void> {
    if (rows.length === 0) return;
    const { dialect, chain } = this.#options;
    const { origin, copy, place } = copying;
    const seals = rows.map(({ row }) => [row.place, chain.entrySeal(copy.sessionId, row)]);
    yield* run(dialect.copyEntries, origin.id, copy.id, place, JSON.stringify(seals));
    copying.place += rows.length;
    if (rows.some(({ row }) => row.refs !== null)) yield* run(this.#ownContents, origin.id, copy.id, place);
  }

  *#insert(entries: readonly SessionEntry[], copying: Copying): Work<void> {
    const { origin, copy } = copying;
    const { sessionId } = copy;
    const { agentId } = origin;
    const appends = entries.map(
      (entry) => ({ type: "append", sessionId, agentId, entry, visibility: "visible" }) as const,
    );
    for (const batch of batchChanges(appends).filter(isBatch)) {
      yield* this.#options.changes.insert(copy, batch);
      copying.place++;
    }
  }
}

/** Returns whether an entry is on the path. */
function pathFilter(path: readonly PathRow[]): (entryId: string) => boolean {
  const byStem = Map.groupBy(path, ({ row }) => row.stem);
  return (entryId) => {
    const { stem, number } = nameOf(entryId);
    const rows = byStem.get(stem) ?? [];
    return rows.some(({ row, count }) => number >= row.number && number < row.number + count);
  };
}

/** Returns the rows that determine the row of the session: the last ones, and those that are not messages. */
function tellingRows(path: readonly PathRow[]): readonly PathRow[] {
  const last = path.at(-1);
  const lastOfRoot = path.findLast(({ row }) => (row.task ?? 0) === 0);
  return path.filter((each) => each.row.type !== "message" || each === last || each === lastOfRoot);
}

/** Returns the batch of a row on the path, with the fields that `noteBatch` needs. Its large values are `null`. */
function batchOf({ row, count }: PathRow, { origin: { agentId }, copy: { sessionId } }: Copying): EntryBatch {
  const rests = (JSON.parse(row.body) as readonly EntryRest[]).slice(0, count);
  const [entry] = entriesIn(row, rests) as [SessionEntry];
  const first = { type: "append", sessionId, agentId, entry, visibility: "visible" } as const;
  return { stem: row.stem, number: row.number, first, rests };
}
