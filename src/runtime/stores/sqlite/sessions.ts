import {
  formatTaskId,
  goesOnFrom,
  parseTaskId,
  saidAfter,
  type EntryVisibility,
  type PlacedEntry,
  type RunId,
  type SessionChange,
  type SessionEntry,
  type SessionId,
  type SessionQuery,
  type Sessions,
  type SessionSummary,
  type TaskId,
} from "../../../kernel/index.ts";
import { orphaned } from "../orphan-entries.ts";
import type { Collector } from "./collector.ts";
import {
  idAfter,
  isStrand,
  latestOf,
  nameOf,
  strandAt,
  strandsOf,
  type EntryName,
  type EntryRest,
  type EntryStrand,
  type Say,
  type StrandedChange,
} from "./entry-strand.ts";
import type { Tables } from "./tables.ts";

/** As they are stored: their place in this list. */
const visibilities: readonly EntryVisibility[] = ["pending", "hidden", "visible"];
const visible = visibilities.indexOf("visible");
const rootTask = 0;

const rowColumns = "stem, number, count, run_id AS runId, task, visibility, type, body";

const readEntries = `SELECT ${rowColumns} FROM entries
  WHERE session = (SELECT id FROM sessions WHERE session_id = ?) AND visibility >= ? ORDER BY entries.id`;
const findEntries = `SELECT ${rowColumns} FROM entries
  WHERE session = (SELECT id FROM sessions WHERE session_id = ?1) AND stem = ?2
    AND number < ?3 + ?4 AND number + count > ?3 ORDER BY number`;
const lastEntries = `SELECT ${rowColumns} FROM entries WHERE session = ?1 AND visibility = ${visible}
    AND (?2 > 0 OR ifnull(task, 0) = 0) AND type NOT IN ('label', 'session_info')
  ORDER BY entries.id DESC LIMIT 1`;
const listed = `SELECT session_id AS sessionId, agent_id AS agentId, updated_at AS updatedAt,
    (SELECT total(count) FROM entries WHERE session = sessions.id) AS entries
  FROM sessions WHERE session_id IS NOT NULL`;
const newest = "ORDER BY updated_at DESC LIMIT ?";
const listAll = `${listed} ${newest}`;
const listOfAgent = `${listed} AND agent_id = ? ${newest}`;
/** "0" is the sign after the slash. */
const listUnder = `${listed} AND session_id > ?1 || '/' AND session_id < ?1 || '0' AND (?2 IS NULL OR agent_id = ?2) ${newest}3`;
const ofRun = "session = ?1 AND run_id = ?2 AND (?3 IS NULL OR task = ?3)";
const revealEntries = `UPDATE entries SET visibility = ${visible} WHERE ${ofRun} AND visibility < 2`;
/** Those that are pending, where the conversation has gone on since. */
const leftEntries = `SELECT id FROM entries WHERE ${ofRun} AND visibility < 2 AND visibility = 0 AND ifnull(task, 0) = 0
    AND EXISTS (SELECT 1 FROM entries AS later WHERE later.session = ?1 AND later.visibility = ${visible}
      AND later.id > entries.id AND ifnull(later.task, 0) = 0 AND later.type NOT IN ('label', 'session_info'))`;
const placeAgain = `UPDATE entries SET id = (SELECT max(id) FROM entries) + 1,
  body = json_set(body, '$[0].parentId', ?2) WHERE id = ?1`;
const removeEntries = `DELETE FROM entries WHERE ${ofRun}`;

/** A row is a strand of entries. */
interface EntryRow extends EntryName {
  readonly count: number;
  readonly runId: RunId | null;
  /** Counts the tasks of its run. */
  readonly task: number | null;
  readonly visibility: number;
  readonly type: SessionEntry["type"];
  /** The rest of each entry, as JSON, and in that of the first its parent: the others are each under the one before. */
  readonly body: string;
}

interface SessionRow {
  readonly id: number;
  readonly updatedAt: number;
}

export class SqliteSessions implements Sessions {
  readonly #tables: Tables;
  readonly #collector: Collector;

  constructor(tables: Tables, collector: Collector) {
    this.#tables = tables;
    this.#collector = collector;
  }

  apply(changes: readonly SessionChange[]): Promise<void> {
    return this.#tables.write({
      apply: () => {
        const strands = strandsOf(changes);
        this.refuseOrphans(strands);
        this.applyNow(strands);
      },
    });
  }

  read(
    sessionId: SessionId,
    { hiddenToo = false }: { readonly hiddenToo?: boolean } = {},
  ): Promise<readonly PlacedEntry[]> {
    return this.#tables.read(() => this.#read(sessionId, hiddenToo ? 0 : visible));
  }

  readNow(sessionId: SessionId): readonly PlacedEntry[] | undefined {
    return this.#tables.readNow(() => this.#read(sessionId, visible));
  }

  #read(sessionId: SessionId, least: number): readonly PlacedEntry[] {
    return this.#tables.database.all<EntryRow>(readEntries, sessionId, least).flatMap((row) => {
      const visibility = visibilities[row.visibility] ?? "hidden";
      return entriesOf(row).map((entry) => ({ entry, visibility }));
    });
  }

  list({ agentId, under, limit = 50 }: SessionQuery = {}): Promise<readonly SessionSummary[]> {
    const rows = (): readonly SessionSummary[] => {
      const { database } = this.#tables;
      if (under !== undefined) return database.all(listUnder, under, agentId ?? null, limit);
      return agentId === undefined ? database.all(listAll, limit) : database.all(listOfAgent, agentId, limit);
    };
    return this.#tables.read(() => rows().map((row) => ({ ...row })));
  }

  async delete(sessionId: SessionId): Promise<void> {
    await this.#tables.write({
      apply: () =>
        this.#tables.database.run("UPDATE sessions SET session_id = NULL WHERE session_id = ?", sessionId),
    });
    await this.#collector.collect();
  }

  /** For those who read the journal: so many from this one on, but for those that were removed since. */
  find(sessionId: SessionId, { stem, number }: EntryName, count: number): readonly SessionEntry[] {
    const rows = this.#tables.database.all<EntryRow>(findEntries, sessionId, stem, number, count);
    return rows.flatMap((row) =>
      entriesOf(row).slice(Math.max(0, number - row.number), number + count - row.number),
    );
  }

  /** N1. For the journal, inside its transaction, before anything is changed. */
  refuseOrphans(changes: readonly StrandedChange[]): void {
    const coming: EntryStrand[] = [];
    for (const change of changes) {
      if (!isStrand(change)) continue;
      const { sessionId, entry, atLeaf } = change.first;
      const parentId = atLeaf === true ? null : entry.parentId;
      if (parentId !== null && !comes(coming, sessionId, parentId) && !this.#has(sessionId, parentId))
        throw orphaned(sessionId, entry);
      coming.push(change);
    }
  }

  /** For the journal, inside its transaction. */
  applyNow(changes: readonly StrandedChange[]): void {
    const { database } = this.#tables;
    const known = new Map<SessionId, SessionRow>();
    /** When each was last added to, where the file does not say so yet. */
    const updated = new Map<number, number>();
    for (const change of changes) {
      const { sessionId } = isStrand(change) ? change.first : change;
      const session = known.get(sessionId) ?? this.#find(sessionId) ?? this.#create(change);
      if (session === undefined) continue;
      known.set(sessionId, session);
      if (isStrand(change)) {
        for (const strand of change.say === undefined
          ? [change]
          : this.#placed(session.id, change, change.say)) {
          const at = this.#append(session.id, strand) ?? 0;
          if (at > (updated.get(session.id) ?? session.updatedAt)) updated.set(session.id, at);
        }
        continue;
      }
      const task = change.taskId === undefined ? null : ordinalOf(change.taskId);
      if (change.type === "reveal") this.#reveal(session.id, change.runId, task);
      else database.run(removeEntries, session.id, change.runId, task);
    }
    for (const [session, at] of updated)
      database.run("UPDATE sessions SET updated_at = ?2 WHERE id = ?1", session, at);
  }

  /** What a run wrote that never became visible. For those who delete it, inside their transaction. */
  removeHiddenNow(sessionId: SessionId, runId: RunId): void {
    this.#tables.database.run(
      "DELETE FROM entries WHERE session = (SELECT id FROM sessions WHERE session_id = ?) AND run_id = ? AND visibility < 2",
      sessionId,
      runId,
    );
  }

  /** N3: what it comes to where the conversation is by now. */
  #placed(session: number, strand: EntryStrand, say: Say): readonly EntryStrand[] {
    const { sessionId, said } = say;
    const leafId = this.#leaf(session, ordinalOf(said.taskId));
    if (goesOnFrom(said, leafId)) return [strand];
    const entries = this.#read(sessionId, visible).map(({ entry }) => entry);
    return strandsOf(saidAfter(entries, leafId, say)).filter(isStrand);
  }

  #reveal(session: number, runId: RunId, task: number | null): void {
    const { database } = this.#tables;
    const left = database.all<{ readonly id: number }>(leftEntries, session, runId, task);
    database.run(revealEntries, session, runId, task);
    // N3.
    for (const { id } of left) database.run(placeAgain, id, this.#leaf(session, rootTask));
  }

  /** When the last of them was said, if any is new (S2). */
  #append(session: number, strand: EntryStrand): number | undefined {
    const { length } = strand.rests;
    const before = this.#lastBefore(session, strand, length);
    if (before === undefined || before.number + before.count <= strand.number) {
      this.#insert(session, strand);
      return latestOf(strand);
    }
    if (length === 1) return undefined;
    // Some of them are there: each by itself.
    let last: number | undefined;
    for (let index = 0; index < length; index++) {
      const at = this.#append(session, strandAt(strand, index));
      if (at !== undefined) last = Math.max(last ?? 0, at);
    }
    return last;
  }

  #insert(session: number, { stem, number, first, rests }: EntryStrand): void {
    const { runId, taskId, type } = first.entry;
    const parentId = first.atLeaf === true ? this.#leaf(session, rootTask) : first.entry.parentId;
    this.#tables.database.run(
      `INSERT INTO entries (session, stem, number, count, run_id, task, visibility, type, body)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      session,
      stem,
      number,
      rests.length,
      runId,
      taskId === null ? null : ordinalOf(taskId),
      visibilities.indexOf(first.visibility),
      type,
      JSON.stringify(rests.with(0, { parentId, ...rests[0] })),
    );
  }

  /** The row that holds one of these, or comes before them. */
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

  /** N2. As it is for what this task says: a root's comes after what roots said, a child's after all there is. */
  #leaf(session: number, task: number): string | null {
    const last = this.#tables.database.get<EntryRow>(lastEntries, session, task);
    if (last === undefined) return null;
    if (last.type !== "leaf") return idAfter(last, last.count - 1);
    const entry = entriesOf(last).at(-1);
    return entry?.type === "leaf" ? entry.targetId : null;
  }

  /** With its first entry. */
  #create(change: StrandedChange): SessionRow | undefined {
    if (!isStrand(change)) return undefined;
    const { sessionId, agentId } = change.first;
    const updatedAt = latestOf(change);
    const id = this.#tables.database.insert(
      "INSERT INTO sessions (session_id, agent_id, updated_at) VALUES (?, ?, ?)",
      sessionId,
      agentId,
      updatedAt,
    );
    return { id, updatedAt };
  }

  #has(sessionId: SessionId, entryId: string): boolean {
    const session = this.#find(sessionId);
    if (session === undefined) return false;
    const name = nameOf(entryId);
    const before = this.#lastBefore(session.id, name, 1);
    return before !== undefined && before.number + before.count > name.number;
  }
}

/** Whether one of the strands that are to be added holds the entry. */
function comes(coming: readonly EntryStrand[], sessionId: SessionId, entryId: string): boolean {
  const { stem, number } = nameOf(entryId);
  return coming.some(
    ({ first, rests, ...strand }) =>
      first.sessionId === sessionId &&
      strand.stem === stem &&
      number >= strand.number &&
      number < strand.number + rests.length,
  );
}

function entriesOf(row: EntryRow): SessionEntry[] {
  const { runId, task, type, body } = row;
  const taskId = task === null ? null : formatTaskId(task);
  let at: number | undefined;
  return (JSON.parse(body) as EntryRest[]).map((rest, index) => {
    at = rest.at ?? at;
    const id = idAfter(row, index);
    return { parentId: idAfter(row, index - 1), at, ...rest, type, id, runId, taskId } as SessionEntry;
  });
}

function ordinalOf(taskId: TaskId): number {
  return Number(parseTaskId(taskId).slice(1));
}
