import {
  continuesFrom,
  rebaseBatch,
  type RunId,
  type SessionId,
  type SessionOwner,
} from "../../../kernel/index.ts";
import { orphaned, targetOf, untargeted } from "../orphan-entries.ts";
import {
  batchAt,
  batchChanges,
  idAfter,
  isBatch,
  type BatchedChange,
  type EntryBatch,
  type Say,
} from "../codec/entry-batch.ts";
import { ordinalOf, visibilities, visible } from "../sql/entry-row.ts";
import {
  changedRow,
  isComing,
  isShownSoon,
  newSession,
  noteBatch,
  titleOf,
  type OpenSession,
  type SessionRow,
} from "../sql/session-state.ts";
import type { Database } from "./db/database.ts";
import { entriesOfSession, rowsPerSession } from "./db/migrations.ts";
import type { EntryContents } from "./rows/entry-contents.ts";
import type { EntryRows } from "./rows/entry-rows.ts";
import type { SessionRows } from "./rows/session-rows.ts";

const unseenOfRun = `session = ?1 AND run_id = ?2 AND (?3 IS NULL OR task = ?3) AND visibility < ${visible}`;
const revealEntries = `UPDATE entries INDEXED BY entries_unseen SET visibility = ${visible} WHERE ${unseenOfRun}`;
/** Pending entries behind which the conversation has continued. */
const leftEntries = `SELECT id FROM entries INDEXED BY entries_unseen
  WHERE ${unseenOfRun} AND visibility = 0 AND ifnull(task, 0) = 0
    AND EXISTS (SELECT 1 FROM entries AS later WHERE later.id > entries.id AND later.id < (?1 + 1) * ${rowsPerSession}
      AND later.visibility = ${visible} AND ifnull(later.task, 0) = 0 AND later.type NOT IN ('label', 'session_info'))`;
const placeAgain = `UPDATE entries SET body = json_set(body, '$[0].parentId', ?3),
    id = 1 + (SELECT id FROM entries WHERE ${entriesOfSession("?1")} ORDER BY id DESC LIMIT 1)
  WHERE id = ?2`;
const removeEntries = `DELETE FROM entries WHERE ${entriesOfSession("?1")} AND run_id = ?2 AND (?3 IS NULL OR task = ?3)`;
const removeUnseen = `DELETE FROM entries INDEXED BY entries_unseen WHERE ${unseenOfRun}`;
const hasEntries = `SELECT 1 FROM entries WHERE ${entriesOfSession("?1")} LIMIT 1`;
const insertEntries = `INSERT INTO entries (id, session, stem, number, count, run_id, task, visibility, type, body, refs)
  VALUES (1 + coalesce((SELECT id FROM entries WHERE ${entriesOfSession("?1")} ORDER BY id DESC LIMIT 1), ?1 * ${rowsPerSession}),
    ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)`;

/** What `refuseOrphans` found out about a batch: its parent exists and none of its entries does. */
export interface Precondition {
  readonly batch: EntryBatch;
  readonly session: SessionRow;
}

/** What is known about the changes of a commit. */
export interface ChangeSource {
  readonly precondition?: Precondition | undefined;
  /** Time of the commit. Default: 0. */
  readonly at?: number;
  /** N6: owner of the sessions that the changes create. */
  readonly owner: SessionOwner;
}

export interface SessionChangesOptions {
  readonly database: Database;
  readonly rows: SessionRows;
  readonly entries: EntryRows;
  readonly contents: EntryContents;
}

/** Changes sessions, inside the transactions of the journal. */
export class SessionChanges {
  readonly #database: Database;
  readonly #rows: SessionRows;
  readonly #entries: EntryRows;
  readonly #contents: EntryContents;

  constructor({ database, rows, entries, contents }: SessionChangesOptions) {
    this.#database = database;
    this.#rows = rows;
    this.#entries = entries;
    this.#contents = contents;
  }

  /**
   * N1, N4: throws `not_found` if the parent of an entry does not exist or its target is not visible. Call before any
   * change. The result saves `apply` a lookup.
   */
  refuseOrphans(changes: readonly BatchedChange[]): Precondition | undefined {
    const coming: EntryBatch[] = [];
    let precondition: Precondition | undefined;
    for (const change of changes) {
      if (!isBatch(change)) continue;
      const { sessionId, entry, atLeaf } = change.first;
      const parentId = atLeaf === true ? null : entry.parentId;
      if (parentId !== null && !isComing(coming, sessionId, parentId)) {
        const session = this.#rows.find(sessionId);
        if (session === undefined) throw orphaned(sessionId, entry);
        if (coming.length === 0 && this.#continues(session, change))
          precondition = { batch: change, session };
        else if (!this.#entries.has(session.id, parentId)) throw orphaned(sessionId, entry);
      }
      if (entry.type === "leaf" || entry.type === "label") this.#refuseTargets(coming, change);
      coming.push(change);
    }
    return precondition;
  }

  #refuseTargets(coming: readonly EntryBatch[], { first, rests }: EntryBatch): void {
    const { sessionId } = first;
    const session = this.#rows.find(sessionId);
    for (const rest of rests) {
      const targetId = targetOf({ ...first.entry, ...rest });
      if (targetId === null) continue;
      const isStored = session !== undefined && this.#entries.isVisible(session.id, targetId);
      if (!isStored && !isShownSoon(coming, sessionId, targetId)) throw untargeted(sessionId, targetId);
    }
  }

  apply(changes: readonly BatchedChange[], source: ChangeSource): void {
    const { precondition } = source;
    let open: OpenSession[] = [];
    for (const change of changes) {
      const { sessionId } = isBatch(change) ? change.first : change;
      let session = open.find((each) => each.sessionId === sessionId);
      const isFree = change === precondition?.batch;
      let isNew = false;
      if (session === undefined) {
        const row = isFree ? precondition?.session : this.#rows.find(sessionId);
        isNew = row === undefined;
        const opened = row ?? this.#create(change, source);
        if (opened === undefined) continue;
        session = { ...opened, sessionId, tenantId: source.owner.tenantId, stored: opened };
        open.push(session);
      }
      if (isBatch(change)) {
        this.#add(session, change, { isNew, isFree });
        continue;
      }
      const task = change.taskId === undefined ? null : ordinalOf(change.taskId);
      if (change.type === "reveal") this.#reveal(session, change.runId, task);
      else if (this.#database.run(removeEntries, session.id, change.runId, task) > 0) {
        const left = this.#afterRemoval(session);
        if (left === undefined) open = open.filter((each) => each !== session);
      }
    }
    for (const session of open) this.#save(session);
  }

  /** Removes the entries of a run that are not visible. */
  removeHidden(sessionId: SessionId, runId: RunId): void {
    const row = this.#rows.find(sessionId);
    if (row === undefined || this.#database.run(removeUnseen, row.id, runId, null) === 0) return;
    const session = this.#afterRemoval({ ...row, sessionId, tenantId: null, stored: row });
    if (session !== undefined) this.#save(session);
  }

  /** Reads again what the row says about its entries. Deletes the row with its last entry and then returns `undefined`. */
  #afterRemoval(session: OpenSession): OpenSession | undefined {
    const { id } = session;
    if (this.#database.get(hasEntries, id) === undefined) {
      this.#rows.delete(id);
      return undefined;
    }
    Object.assign(session, this.#entries.leaves(id));
    if (session.name !== null) session.name = this.#entries.name(id);
    if (session.title !== null) session.title = this.#firstTitle(id);
    return session;
  }

  #firstTitle(session: number): string | null {
    for (const entry of this.#entries.messages(session)) {
      const title = titleOf(entry);
      if (title !== null) return title;
    }
    return null;
  }

  #save(session: OpenSession): void {
    const row = changedRow(session);
    if (row !== undefined) this.#rows.update(row);
  }

  #add(
    session: OpenSession,
    change: EntryBatch,
    { isNew, isFree }: { readonly isNew: boolean; readonly isFree: boolean },
  ): void {
    const { say } = change;
    const batches = say === undefined ? [change] : this.#placed(session, change, say);
    for (const batch of batches)
      if (batch === change && (isNew || isFree)) this.#insert(session, batch);
      else this.#append(session, batch);
  }

  /** N3: returns the batches with which a visible batch continues from the current leaf. */
  #placed(session: OpenSession, batch: EntryBatch, say: Say): readonly EntryBatch[] {
    const { sessionId, batch: said } = say;
    const leafId = ordinalOf(said.taskId) === 0 ? session.leafId : session.lastId;
    if (continuesFrom(said, leafId)) return [batch];
    const entries = this.#entries.read(session.id, sessionId, {}).map(({ entry }) => entry);
    return batchChanges(rebaseBatch(entries, leafId, say)).filter(isBatch);
  }

  #reveal(session: OpenSession, runId: RunId, task: number | null): void {
    const { id } = session;
    const left = this.#database.all<{ readonly id: number }>(leftEntries, id, runId, task);
    if (this.#database.run(revealEntries, id, runId, task) === 0) return;
    Object.assign(session, this.#entries.leaves(id));
    // N3: entries that were pending move behind the leaf.
    for (const row of left) {
      this.#database.run(placeAgain, id, row.id, session.leafId);
      Object.assign(session, this.#entries.leaves(id));
    }
  }

  /** S2: adds the entries that are not stored yet. */
  #append(session: OpenSession, batch: EntryBatch): void {
    const { length } = batch.rests;
    const before = this.#entries.lastBefore(session.id, batch, length);
    if (before === undefined || before.number + before.count <= batch.number) {
      this.#insert(session, batch);
      return;
    }
    // A stored entry implies that all entries before it in the batch are stored.
    for (let index = before.number + before.count - batch.number; index < length; index++)
      this.#insert(session, batchAt(batch, index));
  }

  #insert(session: OpenSession, batch: EntryBatch): void {
    const { stem, number, first, rests } = batch;
    const { runId, taskId, type } = first.entry;
    const parentId = first.atLeaf === true ? session.leafId : first.entry.parentId;
    const split = this.#contents.split(rests.with(0, { parentId, ...rests[0] }));
    const row = this.#database.insert(
      insertEntries,
      session.id,
      stem,
      number,
      rests.length,
      runId,
      taskId === null ? null : ordinalOf(taskId),
      visibilities.indexOf(first.visibility),
      type,
      split.text,
      split.refs,
    );
    this.#contents.keepNow(session.tenantId, row, split);
    noteBatch(session, batch);
  }

  /** Creates the session of its first entry. */
  #create(change: BatchedChange, { at = 0, owner }: ChangeSource): SessionRow | undefined {
    if (!isBatch(change)) return undefined;
    const session = newSession(change, at, owner);
    return { ...session, id: this.#rows.insert(session) };
  }

  /** Whether the parent of the batch is the stored entry right before it, and none of its entries is stored. */
  #continues({ id }: SessionRow, batch: EntryBatch): boolean {
    const { first, number, rests } = batch;
    if (number < 1 || first.entry.parentId !== idAfter(batch, -1)) return false;
    const before = this.#entries.lastBefore(id, batch, rests.length);
    return before !== undefined && before.number + before.count === number;
  }
}
