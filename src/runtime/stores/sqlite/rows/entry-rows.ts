import {
  PathCollector,
  type EntryQuery,
  type SessionEntry,
  type SessionId,
  type StoredEntry,
} from "../../../../kernel/index.ts";
import { checkEntryLimit, missingAfter } from "../../session-cursor.ts";
import { idAfter, nameOf, type EntryName } from "../../codec/entry-batch.ts";
import type { Database } from "../db/database.ts";
import { entriesOfSession } from "../db/migrations.ts";
import type { WithContents } from "../../codec/commit-row.ts";
import {
  entriesIn,
  visibilities,
  visible,
  type EntryMark,
  type EntryRow as StoredRow,
} from "../../sql/entry-row.ts";
import type { EntryContents } from "./entry-contents.ts";

interface EntryRow extends StoredRow, WithContents {
  readonly id: number;
}

const rowColumns = "entries.id, stem, number, count, run_id AS runId, task, visibility, type, body, refs";

const readRows = `SELECT ${rowColumns} FROM entries WHERE ${entriesOfSession("?1")} AND entries.id >= ?2
    AND visibility >= ?3 ORDER BY entries.id LIMIT ?4`;
const readUnseen = `SELECT ${rowColumns} FROM entries INDEXED BY entries_unseen
  WHERE session = ?1 AND visibility < ${visible} AND visibility >= ?3 AND entries.id >= ?2 ORDER BY entries.id LIMIT ?4`;
const findEntries = `SELECT ${rowColumns} FROM entries
  WHERE session = (SELECT id FROM sessions WHERE session_id = ?1) AND stem = ?2
    AND number < ?3 + ?4 AND number + count > ?3 ORDER BY number`;
const rowAt = `SELECT ${rowColumns} FROM entries
  WHERE session = ?1 AND stem = ?2 AND number <= ?3 ORDER BY number DESC LIMIT 1`;
const lastRowBefore =
  "SELECT number, count, visibility FROM entries WHERE session = ? AND stem = ? AND number < ? ORDER BY number DESC LIMIT 1";
const lastRow = `SELECT ${rowColumns} FROM entries WHERE ${entriesOfSession("?1")} AND visibility = ${visible}
    AND (?2 > 0 OR ifnull(task, 0) = 0) AND type NOT IN ('label', 'session_info')
  ORDER BY entries.id DESC LIMIT 1`;
const lastOfType = `SELECT ${rowColumns} FROM entries WHERE ${entriesOfSession("?1")} AND type = ?2
  ORDER BY entries.id DESC LIMIT 1`;
const messagesFrom = `SELECT ${rowColumns} FROM entries WHERE ${entriesOfSession("?1")} AND entries.id > ?2
    AND type = 'message' ORDER BY entries.id LIMIT 16`;

/** Number of rows that one query reads for a page of entries. */
const rowsPerQuery = 64;

/** Reads the entries of sessions. `session` is the id of a row of `sessions`. */
export class EntryRows {
  readonly #database: Database;
  readonly #contents: EntryContents;

  constructor(database: Database, contents: EntryContents) {
    this.#database = database;
    this.#contents = contents;
  }

  /** Returns the entries of a session in the order of appending. */
  read(session: number, sessionId: SessionId, query: EntryQuery): readonly StoredEntry[] {
    const { includeHidden = false, onlyUnseen = false, after, limit = Infinity } = query;
    checkEntryLimit(query.limit);
    const lowest = includeHidden || onlyUnseen ? 0 : visible;
    const sql = onlyUnseen ? readUnseen : readRows;
    const start = after === undefined ? undefined : this.#rowOf(session, after);
    if (after !== undefined && (start === undefined || start.visibility < lowest))
      throw missingAfter(sessionId, after);
    const entries: StoredEntry[] = [];
    let skipped = start === undefined ? 0 : nameOf(after as string).number - start.number + 1;
    for (let from = start?.id ?? 0; entries.length < limit;) {
      const most = limit === Infinity ? -1 : rowsPerQuery;
      const rows = this.#database.all<EntryRow>(sql, session, from, lowest, most);
      for (const row of rows) {
        if (entries.length >= limit) break;
        const visibility = visibilities[row.visibility] ?? "hidden";
        for (const entry of this.#entriesOf(row).slice(skipped)) entries.push({ entry, visibility });
        skipped = 0;
      }
      if (most < 0 || rows.length < most) break;
      from = (rows.at(-1)?.id ?? from) + 1;
    }
    return limit === Infinity ? entries : entries.slice(0, limit);
  }

  /** N5: returns the path to a leaf. It reads only the rows of the path. */
  path(session: number, leafId: string | null, from: "root" | "compaction"): readonly SessionEntry[] {
    const path = new PathCollector(from);
    for (let id = leafId; id !== null;) {
      const row = this.#rowOf(session, id);
      if (row?.visibility !== visible) break;
      const entries = this.#entriesOf(row).slice(0, nameOf(id).number - row.number + 1);
      if (!entries.toReversed().every((entry) => path.add(entry))) break;
      id = entries[0]?.parentId ?? null;
    }
    return path.take();
  }

  /** Returns `count` entries from this one on, without those that were removed. */
  find(sessionId: SessionId, { stem, number }: EntryName, count: number): readonly SessionEntry[] {
    const rows = this.#contents.load(() =>
      this.#database.all<EntryRow>(findEntries, sessionId, stem, number, count),
    );
    return rows.flatMap((row) =>
      this.#entriesOf(row).slice(Math.max(0, number - row.number), number + count - row.number),
    );
  }

  has(session: number, entryId: string): boolean {
    return this.#holds(session, entryId) !== undefined;
  }

  isVisible(session: number, entryId: string): boolean {
    return this.#holds(session, entryId)?.visibility === visible;
  }

  /** Returns the row that holds one of these entries, or the last row before them. */
  lastBefore(session: number, { stem, number }: EntryName, count: number): EntryMark | undefined {
    return this.#database.get(lastRowBefore, session, stem, number + count);
  }

  /** N2, N3: returns the leaf of a root task, or of a child task. */
  leaf(session: number, task: number): string | null {
    return this.#leafAfter(this.#database.get<EntryRow>(lastRow, session, task));
  }

  /** Returns the leaves of root tasks and of child tasks. */
  leaves(session: number): { readonly leafId: string | null; readonly lastId: string | null } {
    const last = this.#database.get<EntryRow>(lastRow, session, 1);
    const lastId = this.#leafAfter(last);
    return { leafId: (last?.task ?? 0) === 0 ? lastId : this.leaf(session, 0), lastId };
  }

  /** Returns the name that the last `session_info` entry sets. */
  name(session: number): string | null {
    const row = this.#database.get<EntryRow>(lastOfType, session, "session_info");
    const entry = row === undefined ? undefined : this.#entriesOf(row).at(-1);
    return entry?.type === "session_info" ? entry.name : null;
  }

  /** Returns the messages of the session, in the order of appending. */
  *messages(session: number): Generator<SessionEntry> {
    for (let from = 0; ;) {
      const rows = this.#database.all<EntryRow>(messagesFrom, session, from);
      for (const row of rows) yield* this.#entriesOf(row);
      const last = rows.at(-1);
      if (last === undefined) return;
      from = last.id;
    }
  }

  #rowOf(session: number, entryId: string): EntryRow | undefined {
    const { stem, number } = nameOf(entryId);
    const row = this.#database.get<EntryRow>(rowAt, session, stem, number);
    return row !== undefined && row.number + row.count > number ? row : undefined;
  }

  #holds(session: number, entryId: string): EntryMark | undefined {
    const name = nameOf(entryId);
    const row = this.lastBefore(session, name, 1);
    return row !== undefined && row.number + row.count > name.number ? row : undefined;
  }

  #entriesOf(row: EntryRow): SessionEntry[] {
    return entriesIn(row, this.#contents.restsOf(row));
  }

  #leafAfter(row: EntryRow | undefined): string | null {
    if (row === undefined) return null;
    if (row.type !== "leaf") return idAfter(row, row.count - 1);
    const entry = this.#entriesOf(row).at(-1);
    return entry?.type === "leaf" ? entry.targetId : null;
  }
}
