import {
  continuesFrom,
  rebaseBatch,
  type PathCopy,
  type RunId,
  type SessionId,
  type SessionOwner,
} from "../../../kernel/index.ts";
import {
  batchAt,
  batchChanges,
  idAfter,
  isBatch,
  type BatchedChange,
  type EntryBatch,
  type Say,
} from "../codec/entry-batch.ts";
import type { Chain, SealedEntries } from "../codec/chain.ts";
import type { LargeValues } from "../codec/large-values.ts";
import { OwnerKind } from "../codec/owner-kind.ts";
import { tenantText } from "../codec/stored-run.ts";
import { orphaned, targetOf, untargeted } from "../orphan-entries.ts";
import type { ContentRows } from "./content-rows.ts";
import type { Dialect } from "./dialect.ts";
import { ordinalOf, visibilities, visible } from "./entry-row.ts";
import type { EntryRows } from "./entry-rows.ts";
import { deleteSession, findSession, insertSession, updateSession } from "./session-rows.ts";
import {
  changedRow,
  isComing,
  isShownSoon,
  newSession,
  noteBatch,
  type OpenSession,
  type SessionRow,
} from "./session-state.ts";
import { all, get, run, type Work } from "./work.ts";

const unseenOfRun = `session = $1 AND run_id = $2 AND ($3::bigint IS NULL OR task = $3) AND visibility < ${visible}`;
const revealEntries = `UPDATE {entries} AS entries INDEXED BY entries_unseen SET visibility = ${visible} WHERE ${unseenOfRun}`;
const removeUnseen = `DELETE FROM {entries} AS entries INDEXED BY entries_unseen WHERE ${unseenOfRun} RETURNING count`;

/** The statements that differ between the dialects. `$1` is the id of a row of `sessions`. */
function statementsOf({ entryPlace: place, nextEntryPlace, entriesOf }: Dialect) {
  const ofSession = entriesOf("$1");
  const later = entriesOf("$1", { as: "later", after: `entries.${place}` });
  return {
    /** SQL for pending entries that are followed by other entries of the conversation. */
    leftEntries: `SELECT ${place} AS place FROM {entries} AS entries INDEXED BY entries_unseen
      WHERE ${unseenOfRun} AND visibility = 0 AND coalesce(task, 0) = 0
        AND EXISTS (SELECT 1 FROM {entries} AS later WHERE ${later} AND later.visibility = ${visible}
          AND coalesce(later.task, 0) = 0 AND later.type NOT IN ('label', 'session_info'))
      ORDER BY ${place}`,
    readLeft: `SELECT stem, number, count, run_id AS "runId", task, type, body, refs FROM {entries}
      WHERE session = $1 AND ${place} = $2`,
    placeAgain: `UPDATE {entries} SET body = $3, seal = $4, ${place} = ${nextEntryPlace}
      WHERE session = $1 AND ${place} = $2`,
    removeEntries: `DELETE FROM {entries} AS entries WHERE ${ofSession} AND run_id = $2 AND ($3::bigint IS NULL OR task = $3)
      RETURNING count`,
    insertEntries: `INSERT INTO {entries} (${place}, session, stem, number, count, run_id, task, visibility, type, body, refs, seal)
      VALUES (${nextEntryPlace}, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) RETURNING id`,
  };
}

/** What `refuseOrphans` has found out about a batch: its parent exists, and none of its entries exists. */
export interface Precondition {
  readonly batch: EntryBatch;
  readonly session: SessionRow;
}

/** A row that was removed, with the number of its entries. */
interface RemovedRow {
  readonly count: number;
}

/** The facts about a commit that its session changes need. */
export interface ChangeSource {
  readonly precondition?: Precondition | undefined;
  /** Time of the commit. Default: 0. */
  readonly at?: number;
  /** N6: owner of the sessions that the changes create. */
  readonly owner: SessionOwner;
}

export interface SessionChangesOptions {
  readonly dialect: Dialect;
  readonly entries: EntryRows;
  readonly contents: ContentRows;
  readonly large: LargeValues;
  readonly chain: Chain;
}

/** Changes sessions inside the transactions of the journal, which have the locks of the sessions. */
export class SessionChanges {
  readonly #entries: EntryRows;
  readonly #contents: ContentRows;
  readonly #large: LargeValues;
  readonly #chain: Chain;
  readonly #sql: ReturnType<typeof statementsOf>;

  constructor({ dialect, entries, contents, large, chain }: SessionChangesOptions) {
    this.#entries = entries;
    this.#contents = contents;
    this.#large = large;
    this.#chain = chain;
    this.#sql = statementsOf(dialect);
  }

  /**
   * N1, N4: throws `not_found` if the parent of an entry does not exist or its target is not visible. Call it
   * before any change. `apply` uses the result to avoid a lookup. N7: if a `copy` comes first, its current entry
   * counts as an existing parent.
   */
  *refuseOrphans(changes: readonly BatchedChange[], copy?: PathCopy): Work<Precondition | undefined> {
    const coming: EntryBatch[] = [];
    let precondition: Precondition | undefined;
    for (const change of changes) {
      if (!isBatch(change)) continue;
      const { sessionId, entry, atLeaf } = change.first;
      const parentId = atLeaf === true ? null : entry.parentId;
      const isCopied = copy !== undefined && copy.to === sessionId && copy.leafId === parentId;
      if (parentId !== null && !isCopied && !isComing(coming, sessionId, parentId)) {
        const session = yield* findSession(sessionId);
        if (session === undefined) throw orphaned(sessionId, entry);
        if (coming.length === 0 && (yield* this.#continues(session, change)))
          precondition = { batch: change, session };
        else if (!(yield* this.#entries.has(session.id, parentId))) throw orphaned(sessionId, entry);
      }
      if (entry.type === "leaf" || entry.type === "label") yield* this.#refuseTargets(coming, change);
      coming.push(change);
    }
    return precondition;
  }

  *#refuseTargets(coming: readonly EntryBatch[], { first, rests }: EntryBatch): Work<void> {
    const { sessionId } = first;
    const session = yield* findSession(sessionId);
    for (const rest of rests) {
      const targetId = targetOf({ ...first.entry, ...rest });
      if (targetId === null) continue;
      const isStored = session !== undefined && (yield* this.#entries.isVisible(session.id, targetId));
      if (!isStored && !isShownSoon(coming, sessionId, targetId)) throw untargeted(sessionId, targetId);
    }
  }

  *apply(changes: readonly BatchedChange[], source: ChangeSource): Work<void> {
    const { precondition } = source;
    let open: OpenSession[] = [];
    for (const change of changes) {
      const { sessionId } = isBatch(change) ? change.first : change;
      let session = open.find((each) => each.sessionId === sessionId);
      const isFree = change === precondition?.batch;
      let isNew = false;
      if (session === undefined) {
        const row = isFree ? precondition?.session : yield* findSession(sessionId);
        isNew = row === undefined;
        const opened = row ?? (yield* this.#create(change, source));
        if (opened === undefined) continue;
        session = { ...opened, sessionId, tenantId: source.owner.tenantId, stored: opened };
        open.push(session);
      }
      if (isBatch(change)) {
        yield* this.#add(session, change, { isNew, isFree });
        continue;
      }
      const task = change.taskId === undefined ? null : ordinalOf(change.taskId);
      if (change.type === "reveal") yield* this.#reveal(session, change.runId, task);
      else {
        const removed = yield* all<RemovedRow>(this.#sql.removeEntries, session.id, change.runId, task);
        if (removed.length === 0) continue;
        const left = yield* this.#afterRemoval(session, removed);
        if (left === undefined) open = open.filter((each) => each !== session);
      }
    }
    for (const session of open) yield* this.save(session);
  }

  /** Removes the entries of a run that are not visible. */
  *removeHidden(sessionId: SessionId, runId: RunId): Work<void> {
    const row = yield* findSession(sessionId);
    if (row === undefined) return;
    const removed = yield* all<RemovedRow>(removeUnseen, row.id, runId, null);
    if (removed.length === 0) return;
    const session = yield* this.#afterRemoval({ ...row, sessionId, tenantId: null, stored: row }, removed);
    if (session !== undefined) yield* this.save(session);
  }

  /**
   * Updates the row of a session after entries were removed. If no entry is left, deletes the row and returns
   * `undefined`.
   */
  *#afterRemoval(session: OpenSession, removed: readonly RemovedRow[]): Work<OpenSession | undefined> {
    const { id } = session;
    for (const { count } of removed) session.size -= count;
    if (session.size === 0) {
      yield* deleteSession(id);
      return undefined;
    }
    Object.assign(session, yield* this.#entries.leaves(id));
    if (session.name !== null) session.name = yield* this.#entries.name(id);
    if (session.title !== null) session.title = yield* this.#entries.title(id);
    return session;
  }

  /** Stores what has changed in the row of the session. */
  *save(session: OpenSession): Work<void> {
    const row = changedRow(session);
    if (row !== undefined) yield* updateSession(row);
  }

  *#add(
    session: OpenSession,
    change: EntryBatch,
    { isNew, isFree }: { readonly isNew: boolean; readonly isFree: boolean },
  ): Work<void> {
    const { say } = change;
    const batches = say === undefined ? [change] : yield* this.#placed(session, change, say);
    for (const batch of batches)
      if (batch === change && (isNew || isFree)) yield* this.insert(session, batch);
      else yield* this.#append(session, batch);
  }

  /** N3: returns the batches with which a visible batch continues from the current entry. */
  *#placed(session: OpenSession, batch: EntryBatch, say: Say): Work<readonly EntryBatch[]> {
    const { sessionId, batch: said } = say;
    const leafId = ordinalOf(said.taskId) === 0 ? session.leafId : session.lastId;
    if (continuesFrom(said, leafId)) return [batch];
    const stored = yield* this.#entries.read(session.id, sessionId, {});
    const entries = stored.map(({ entry }) => entry);
    return batchChanges(rebaseBatch(entries, leafId, say)).filter(isBatch);
  }

  *#reveal(session: OpenSession, runId: RunId, task: number | null): Work<void> {
    const { id } = session;
    const left = yield* all<{ readonly place: number }>(this.#sql.leftEntries, id, runId, task);
    if ((yield* run(revealEntries, id, runId, task)) === 0) return;
    Object.assign(session, yield* this.#entries.leaves(id));
    // N3: entries that were pending move behind the current entry.
    for (const { place } of left) {
      const row = yield* get<SealedEntries>(this.#sql.readLeft, id, place);
      if (row === undefined) continue;
      const body = withParent(row.body, session.leafId);
      const seal = this.#chain.entrySeal(session.sessionId, { ...row, body });
      yield* run(this.#sql.placeAgain, id, place, body, seal);
      Object.assign(session, yield* this.#entries.leaves(id));
    }
  }

  /** S2: adds the entries that are not stored yet. */
  *#append(session: OpenSession, batch: EntryBatch): Work<void> {
    const { length } = batch.rests;
    const before = yield* this.#entries.lastBefore(session.id, batch, length);
    if (before === undefined || before.number + before.count <= batch.number) {
      yield* this.insert(session, batch);
      return;
    }
    // A stored entry implies that all entries before it in the batch are stored.
    for (let index = before.number + before.count - batch.number; index < length; index++)
      yield* this.insert(session, batchAt(batch, index));
  }

  /** Stores a batch without any stored entry, and updates the session. */
  *insert(session: OpenSession, batch: EntryBatch): Work<void> {
    const { stem, number, first, rests } = batch;
    const { runId, taskId, type } = first.entry;
    const parentId = first.atLeaf === true ? session.leafId : first.entry.parentId;
    const split = this.#large.splitItems(rests.with(0, { parentId, ...rests[0] }));
    const { text: body, refs } = split;
    const task = taskId === null ? null : ordinalOf(taskId);
    const count = rests.length;
    const sealed = { stem, number, count, runId, task, type, body, refs };
    const row = yield* get<{ readonly id: number }>(
      this.#sql.insertEntries,
      session.id,
      stem,
      number,
      count,
      runId,
      task,
      visibilities.indexOf(first.visibility),
      type,
      body,
      refs,
      this.#chain.entrySeal(session.sessionId, sealed),
    );
    if (split.values.length > 0) {
      const owner = { kind: OwnerKind.ENTRIES, id: (row as { readonly id: number }).id };
      yield* this.#contents.keep(tenantText(session.tenantId), owner, split.values);
    }
    noteBatch(session, batch);
  }

  /** Creates the session of its first entry. */
  *#create(change: BatchedChange, { at = 0, owner }: ChangeSource): Work<SessionRow | undefined> {
    if (!isBatch(change)) return undefined;
    const session = newSession(change, at, owner);
    return { ...session, id: yield* insertSession(session) };
  }

  /** Whether the parent of the batch is the last stored entry before it, and none of its entries is stored. */
  *#continues({ id }: SessionRow, batch: EntryBatch): Work<boolean> {
    const { first, number, rests } = batch;
    if (number < 1 || first.entry.parentId !== idAfter(batch, -1)) return false;
    const before = yield* this.#entries.lastBefore(id, batch, rests.length);
    return before !== undefined && before.number + before.count === number;
  }
}

/** Returns the body of a row with another parent of its first entry. */
function withParent(body: string, parentId: string | null): string {
  const [first, ...others] = JSON.parse(body) as readonly object[];
  return JSON.stringify([{ ...first, parentId }, ...others]);
}
