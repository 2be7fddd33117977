import {
  formatTaskId,
  continuesFrom,
  parseTaskId,
  rebaseBatch,
  type EntryVisibility,
  type MaybePromise,
  type StoredEntry,
  type RunId,
  type RunSummary,
  type SessionChange,
  type SessionEntry,
  type SessionId,
  type SessionQuery,
  type Sessions,
  type SessionSummary,
  type TaskId,
} from "../../../kernel/index.ts";
import { orphaned } from "../orphan-entries.ts";
import type { Collector } from "./retention/collector.ts";
import {
  idAfter,
  isBatch,
  latestOf,
  nameOf,
  batchAt,
  batchChanges,
  type EntryName,
  type EntryBatch,
  type Say,
  type BatchedChange,
} from "./codec/entry-batch.ts";
import { entriesOfSession, rowsPerSession } from "./db/migrations.ts";
import type { RunList } from "./rows/run-list.ts";
import { tenantText } from "./db/run-row.ts";
import { restsOf, type EntryContents, type EntryText } from "./rows/entry-contents.ts";
import type { Tables } from "./db/tables.ts";
import { deleteUnnamed } from "./retention/unnamed-sessions.ts";

/** A visibility is stored as its index in this list. */
const visibilities: readonly EntryVisibility[] = ["pending", "hidden", "visible"];
const visible = visibilities.indexOf("visible");
const rootTask = 0;

const rowColumns = "stem, number, count, run_id AS runId, task, visibility, type, body, refs";

const readEntries = `SELECT ${rowColumns} FROM sessions JOIN entries ON ${entriesOfSession("sessions.id")} WHERE session_id = ?`;
const readAll = `${readEntries} ORDER BY entries.id`;
const readVisible = `${readEntries} AND visibility = ${visible} ORDER BY entries.id`;
const findEntries = `SELECT ${rowColumns} FROM entries
  WHERE session = (SELECT id FROM sessions WHERE session_id = ?1) AND stem = ?2
    AND number < ?3 + ?4 AND number + count > ?3 ORDER BY number`;
const lastEntries = `SELECT ${rowColumns} FROM entries WHERE ${entriesOfSession("?1")} AND visibility = ${visible}
    AND (?2 > 0 OR ifnull(task, 0) = 0) AND type NOT IN ('label', 'session_info')
  ORDER BY entries.id DESC LIMIT 1`;
const listed = `SELECT session_id AS sessionId, agent_id AS agentId, updated_at AS updatedAt,
    (SELECT total(count) FROM entries WHERE session = sessions.id) AS entries
  FROM sessions WHERE session_id IS NOT NULL`;
const newest = "ORDER BY updated_at DESC LIMIT ?";
const listAll = `${listed} ${newest}`;
const listOfAgent = `${listed} AND agent_id = ? ${newest}`;
/** Sessions within another (`sessionWithin`). "$" is the character after "#". */
const isWithin = "session_id > ?1 || '#' AND session_id < ?1 || '$'";
const listUnder = `${listed} AND ${isWithin} AND (?2 IS NULL OR agent_id = ?2) ${newest}3`;
const deleteWithWorkers = `UPDATE sessions SET session_id = NULL WHERE session_id = ?1 OR (${isWithin})`;
const ofRun = `${entriesOfSession("?1")} AND run_id = ?2 AND (?3 IS NULL OR task = ?3)`;
const revealEntries = `UPDATE entries SET visibility = ${visible} WHERE ${ofRun} AND visibility < ${visible}`;
/** Pending entries behind which the conversation has continued. */
const leftEntries = `SELECT id FROM entries WHERE ${ofRun} AND visibility = 0 AND ifnull(task, 0) = 0
    AND EXISTS (SELECT 1 FROM entries AS later WHERE later.id > entries.id AND later.id < (?1 + 1) * ${rowsPerSession}
      AND later.visibility = ${visible} AND ifnull(later.task, 0) = 0 AND later.type NOT IN ('label', 'session_info'))`;
const placeAgain = `UPDATE entries SET body = json_set(body, '$[0].parentId', ?3),
    id = 1 + (SELECT id FROM entries WHERE ${entriesOfSession("?1")} ORDER BY id DESC LIMIT 1)
  WHERE id = ?2`;
const removeEntries = `DELETE FROM entries WHERE ${ofRun}`;
const removeHidden = `DELETE FROM entries WHERE ${entriesOfSession("(SELECT id FROM sessions WHERE session_id = ?1)")}
    AND run_id = ?2 AND visibility < ${visible}`;
const insertEntries = `INSERT INTO entries (id, session, stem, number, count, run_id, task, visibility, type, body, refs)
  VALUES (1 + coalesce((SELECT id FROM entries WHERE ${entriesOfSession("?1")} ORDER BY id DESC LIMIT 1), ?1 * ${rowsPerSession}),
    ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)`;

/** A row holds a batch of entries. */
interface EntryRow extends EntryName, EntryText {
  readonly count: number;
  readonly runId: RunId | null;
  /** Ordinal of the task in its run. */
  readonly task: number | null;
  readonly visibility: number;
  readonly type: SessionEntry["type"];
}

interface SessionRow {
  readonly id: number;
  readonly updatedAt: number;
}

/** A session that is being changed. */
interface OpenSession extends SessionRow {
  readonly sessionId: SessionId;
  /** Stored form of the tenant whose contents the session uses. */
  readonly tenant: string;
  /** Time of the latest entry. */
  latest: number;
}

/** What `refuseOrphans` found out about a batch: its parent exists and none of its entries does. */
export interface Precondition {
  readonly batch: EntryBatch;
  readonly session: SessionRow;
}

/** What is known about the commit whose changes are applied. */
interface Applied {
  readonly precondition?: Precondition | undefined;
  /** Time of the commit. Default: 0. */
  readonly at?: number;
  /** Tenant of the run. Default: `null`. */
  readonly tenantId?: string | null;
}

export class SqliteSessions implements Sessions {
  readonly #tables: Tables;
  readonly #collector: Collector;
  readonly #runs: RunList;
  readonly #contents: EntryContents;

  constructor(tables: Tables, collector: Collector, runs: RunList, contents: EntryContents) {
    this.#tables = tables;
    this.#collector = collector;
    this.#runs = runs;
    this.#contents = contents;
  }

  async apply(changes: readonly SessionChange[]): Promise<void> {
    await this.#tables.write({
      apply: () => {
        const batches = batchChanges(changes);
        this.refuseOrphans(batches);
        this.applyNow(batches);
      },
    });
    if (changes.some(({ type }) => type === "remove")) await this.#collector.collect();
  }

  read(
    sessionId: SessionId,
    { includeHidden = false }: { readonly includeHidden?: boolean } = {},
  ): MaybePromise<readonly StoredEntry[]> {
    return this.#tables.read(() => this.#read(sessionId, includeHidden ? readAll : readVisible));
  }

  #read(sessionId: SessionId, sql: string): readonly StoredEntry[] {
    return this.#rows(sql, sessionId).flatMap((row) => {
      const visibility = visibilities[row.visibility] ?? "hidden";
      return entriesOf(row).map((entry) => ({ entry, visibility }));
    });
  }

  #rows(sql: string, ...values: (string | number)[]): EntryRow[] {
    return this.#contents.load(() => this.#tables.database.all<EntryRow>(sql, ...values));
  }

  async list({ agentId, under, limit = 50 }: SessionQuery = {}): Promise<readonly SessionSummary[]> {
    const rows = (): readonly SessionSummary[] => {
      const { database } = this.#tables;
      if (under !== undefined) return database.all(listUnder, under, agentId ?? null, limit);
      return agentId === undefined ? database.all(listAll, limit) : database.all(listOfAgent, agentId, limit);
    };
    return this.#tables.read(() => rows().map((row) => ({ ...row })));
  }

  async delete(sessionId: SessionId): Promise<RunSummary | undefined> {
    const inTheWay = await this.#tables.write({
      apply: () => {
        const run = this.#runs.findUnderWay(sessionId);
        if (run === undefined) this.#tables.database.run(deleteWithWorkers, sessionId);
        return run;
      },
    });
    if (inTheWay === undefined) await this.#collector.collect();
    return inTheWay;
  }

  async collect({ unnamedBefore }: { readonly unnamedBefore: number }): Promise<number> {
    const count = await deleteUnnamed(this.#tables, unnamedBefore);
    if (count > 0) await this.#collector.collect();
    return count;
  }

  /**
   * Returns `count` entries from this one on, without those that were removed. The journal uses it to decode commits.
   */
  find(sessionId: SessionId, { stem, number }: EntryName, count: number): readonly SessionEntry[] {
    return this.#rows(findEntries, sessionId, stem, number, count).flatMap((row) =>
      entriesOf(row).slice(Math.max(0, number - row.number), number + count - row.number),
    );
  }

  /**
   * N1: throws `not_found` if the parent of an entry does not exist. Call inside the journal's transaction, before any
   * change. The result saves `applyNow` a lookup.
   */
  refuseOrphans(changes: readonly BatchedChange[]): Precondition | undefined {
    const coming: EntryBatch[] = [];
    let precondition: Precondition | undefined;
    for (const change of changes) {
      if (!isBatch(change)) continue;
      const { sessionId, entry, atLeaf } = change.first;
      const parentId = atLeaf === true ? null : entry.parentId;
      if (parentId !== null && !comes(coming, sessionId, parentId)) {
        const session = this.#find(sessionId);
        if (session === undefined) throw orphaned(sessionId, entry);
        if (coming.length === 0 && this.#goesOn(session, change)) precondition = { batch: change, session };
        else if (!this.#has(session, parentId)) throw orphaned(sessionId, entry);
      }
      coming.push(change);
    }
    return precondition;
  }

  /** Applies the session changes of a commit, inside its transaction. */
  applyNow(changes: readonly BatchedChange[], { precondition, at = 0, tenantId = null }: Applied = {}): void {
    const { database } = this.#tables;
    const tenant = tenantText(tenantId);
    const open: OpenSession[] = [];
    for (const change of changes) {
      const { sessionId } = isBatch(change) ? change.first : change;
      let session = open.find((each) => each.sessionId === sessionId);
      const isFree = change === precondition?.batch;
      let isNew = false;
      if (session === undefined) {
        const row = isFree ? precondition?.session : this.#find(sessionId);
        isNew = row === undefined;
        const opened = row ?? this.#create(change, at);
        if (opened === undefined) continue;
        session = { ...opened, sessionId, tenant, latest: opened.updatedAt };
        open.push(session);
      }
      if (isBatch(change)) {
        const { say } = change;
        const batches = isNew || say === undefined ? [change] : this.#placed(session.id, change, say);
        for (const batch of batches) {
          const isKnown = batch === change && (isNew || isFree);
          const saidAt = isKnown ? this.#insert(session, batch, isNew) : this.#append(session, batch);
          if (saidAt !== undefined && saidAt > session.latest) session.latest = saidAt;
        }
        continue;
      }
      const task = change.taskId === undefined ? null : ordinalOf(change.taskId);
      if (change.type === "reveal") this.#reveal(session.id, change.runId, task);
      else database.run(removeEntries, session.id, change.runId, task);
    }
    for (const { id, updatedAt, latest } of open)
      if (latest > updatedAt) database.run("UPDATE sessions SET updated_at = ?2 WHERE id = ?1", id, latest);
  }

  /** Removes the entries of a run that are not visible, inside the transaction that deletes the run. */
  removeHiddenNow(sessionId: SessionId, runId: RunId): void {
    this.#tables.database.run(removeHidden, sessionId, runId);
  }

  /** N3: returns the batches with which a visible batch continues from the current leaf. */
  #placed(session: number, batch: EntryBatch, say: Say): readonly EntryBatch[] {
    const { sessionId, batch: said } = say;
    const leafId = this.#leaf(session, ordinalOf(said.taskId));
    if (continuesFrom(said, leafId)) return [batch];
    const entries = this.#read(sessionId, readVisible).map(({ entry }) => entry);
    return batchChanges(rebaseBatch(entries, leafId, say)).filter(isBatch);
  }

  #reveal(session: number, runId: RunId, task: number | null): void {
    const { database } = this.#tables;
    const left = database.all<{ readonly id: number }>(leftEntries, session, runId, task);
    database.run(revealEntries, session, runId, task);
    // N3: entries that were pending move behind the leaf.
    for (const { id } of left) database.run(placeAgain, session, id, this.#leaf(session, rootTask));
  }

  /**
   * S2: adds the entries that are not stored yet. Returns the time of the latest one, or `undefined` if all are stored.
   */
  #append(session: OpenSession, batch: EntryBatch): number | undefined {
    const { length } = batch.rests;
    const before = this.#lastBefore(session.id, batch, length);
    if (before === undefined || before.number + before.count <= batch.number)
      return this.#insert(session, batch);
    // A stored entry implies that all entries before it in the batch are stored.
    let last: number | undefined;
    for (let index = before.number + before.count - batch.number; index < length; index++)
      last = Math.max(last ?? 0, this.#insert(session, batchAt(batch, index)));
    return last;
  }

  /** Inserts a batch. Returns the time of its latest entry. */
  #insert({ id, tenant }: OpenSession, batch: EntryBatch, isNew = false): number {
    const { stem, number, first, rests } = batch;
    const { runId, taskId, type } = first.entry;
    const leaf = first.atLeaf === true && !isNew ? this.#leaf(id, rootTask) : null;
    const parentId = first.atLeaf === true ? leaf : first.entry.parentId;
    const split = this.#contents.split(rests.with(0, { parentId, ...rests[0] }));
    const row = this.#tables.database.insert(
      insertEntries,
      id,
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
    this.#contents.keepNow(tenant, row, split);
    return latestOf(batch);
  }

  /** Returns the row that holds one of these entries, or the last row before them. */
  #lastBefore(
    session: number,
    { stem, number }: EntryName,
    count: number,
  ): Pick<EntryRow, "number" | "count"> | undefined {
    return this.#tables.database.get<Pick<EntryRow, "number" | "count">>(
      "SELECT number, count FROM entries WHERE session = ? AND stem = ? AND number < ? ORDER BY number DESC LIMIT 1",
      session,
      stem,
      number + count,
    );
  }

  #find(sessionId: SessionId): SessionRow | undefined {
    return this.#tables.database.get<SessionRow>(
      "SELECT id, updated_at AS updatedAt FROM sessions WHERE session_id = ?",
      sessionId,
    );
  }

  /**
   * N2: returns the leaf for this task. The root continues from the last entry of a root task, a child from the last
   * entry.
   */
  #leaf(session: number, task: number): string | null {
    const [last] = this.#rows(lastEntries, session, task);
    if (last === undefined) return null;
    if (last.type !== "leaf") return idAfter(last, last.count - 1);
    const entry = entriesOf(last).at(-1);
    return entry?.type === "leaf" ? entry.targetId : null;
  }

  /** Creates the session of its first entry. */
  #create(change: BatchedChange, at: number): SessionRow | undefined {
    if (!isBatch(change)) return undefined;
    const { sessionId, agentId } = change.first;
    const updatedAt = Math.max(latestOf(change), at);
    const id = this.#tables.database.insert(
      "INSERT INTO sessions (session_id, agent_id, updated_at) VALUES (?, ?, ?)",
      sessionId,
      agentId,
      updatedAt,
    );
    return { id, updatedAt };
  }

  #has({ id }: SessionRow, entryId: string): boolean {
    const name = nameOf(entryId);
    const before = this.#lastBefore(id, name, 1);
    return before !== undefined && before.number + before.count > name.number;
  }

  /** Whether the parent of the batch is the stored entry right before it, and none of its entries is stored. */
  #goesOn({ id }: SessionRow, batch: EntryBatch): boolean {
    const { first, number, rests } = batch;
    if (number < 1 || first.entry.parentId !== idAfter(batch, -1)) return false;
    const before = this.#lastBefore(id, batch, rests.length);
    return before !== undefined && before.number + before.count === number;
  }
}

/** Whether one of the batches that are about to be added holds the entry. Most often it is the last one. */
function comes(coming: readonly EntryBatch[], sessionId: SessionId, entryId: string): boolean {
  const { stem, number } = nameOf(entryId);
  const holder = coming.findLast(
    (batch) =>
      batch.first.sessionId === sessionId &&
      batch.stem === stem &&
      number >= batch.number &&
      number < batch.number + batch.rests.length,
  );
  return holder !== undefined;
}

function entriesOf(row: EntryRow): SessionEntry[] {
  const { runId, task, type } = row;
  const taskId = task === null ? null : formatTaskId(task);
  let at: number | undefined;
  return restsOf(row).map((rest, index) => {
    at = rest.at ?? at;
    const id = idAfter(row, index);
    return { parentId: idAfter(row, index - 1), at, ...rest, type, id, runId, taskId } as SessionEntry;
  });
}

function ordinalOf(taskId: TaskId): number {
  return Number(parseTaskId(taskId).slice(1));
}
