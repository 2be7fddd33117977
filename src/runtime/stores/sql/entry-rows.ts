import {
  Fault,
  PathCollector,
  type EntryQuery,
  type SessionEntry,
  type SessionId,
  type StoredEntry,
} from "../../../kernel/index.ts";
import { idAfter, nameOf, type EntryName, type EntryRest } from "../codec/entry-batch.ts";
import { joinText } from "../codec/large-values.ts";
import { checkEntryLimit, missingAfter } from "../session-cursor.ts";
import type { ContentRows } from "./content-rows.ts";
import type { Dialect } from "./dialect.ts";
import { entriesIn, visibilities, visible, type EntryMark, type EntryRow as StoredRow } from "./entry-row.ts";
import { titleOf } from "./session-state.ts";
import { all, get, type Work } from "./work.ts";

export interface EntryRow extends StoredRow {
  readonly place: number;
}

/** A row of a path. */
export interface PathRow {
  readonly row: EntryRow;
  /** Number of its entries, from the first, that are on the path. */
  readonly count: number;
  /** Parent of its first entry. */
  readonly parentId: string | null;
}

/** Number of rows that one query reads for a page of entries. */
const rowsPerQuery = 64;
/** A number that no session reaches. */
const noLimit = 2 ** 31 - 1;

const lastRowBefore = `SELECT number, count, visibility FROM {entries}
  WHERE session = $1 AND stem = $2 AND number < $3 ORDER BY number DESC LIMIT 1`;

/** The columns of an `EntryRow`. The table is named `entries` in the query. */
export function entryColumns({ entryPlace }: Dialect): string {
  return `entries.${entryPlace} AS place, stem, number, count, entries.run_id AS "runId", task, visibility, type, body, refs`;
}

/** Returns the statements that differ between the SQL dialects. `$1` is the id of a row of `sessions`. */
function statementsOf(dialect: Dialect) {
  const { entryPlace, entriesOf } = dialect;
  const place = `entries.${entryPlace}`;
  const rows = `SELECT ${entryColumns(dialect)} FROM {entries} AS entries`;
  const ofSession = entriesOf("$1");
  return {
    readRows: `${rows} WHERE ${entriesOf("$1", { after: "$2" })} AND visibility >= $3 ORDER BY ${place} LIMIT $4 + 0`,
    readUnseen: `${rows} INDEXED BY entries_unseen WHERE session = $1 AND visibility < ${visible} AND visibility >= $3
      AND ${place} > $2 ORDER BY ${place} LIMIT $4 + 0`,
    rowAt: `${rows} WHERE session = $1 AND stem = $2 AND number <= $3 ORDER BY number DESC LIMIT 1`,
    lastRow: `${rows} WHERE ${ofSession} AND visibility = ${visible}
      AND ($2::integer > 0 OR coalesce(task, 0) = 0) AND type NOT IN ('label', 'session_info')
      ORDER BY ${place} DESC LIMIT 1`,
    lastOfType: `${rows} WHERE ${ofSession} AND type = $2 ORDER BY ${place} DESC LIMIT 1`,
    messagesFrom: `${rows} WHERE ${entriesOf("$1", { after: "$2" })} AND type = 'message' ORDER BY ${place} LIMIT 16`,
    rowsBefore: `${rows} WHERE ${entriesOf("$1", { upTo: "$2" })} ORDER BY ${place} DESC LIMIT $3 + 0`,
    labels: `${rows} WHERE ${ofSession} AND type = 'label' AND visibility = ${visible} ORDER BY ${place}`,
  };
}

/** Reads the entries of sessions. `session` is the id of a row of `sessions`. */
export class EntryRows {
  readonly #contents: ContentRows;
  readonly #dialect: Dialect;
  readonly #sql: ReturnType<typeof statementsOf>;

  constructor(dialect: Dialect, contents: ContentRows) {
    this.#contents = contents;
    this.#dialect = dialect;
    this.#sql = statementsOf(dialect);
  }

  /** Returns the entries of a session in the order in which they were appended. Call it inside a transaction. */
  *read(session: number, sessionId: SessionId, query: EntryQuery): Work<readonly StoredEntry[]> {
    const { includeHidden = false, onlyUnseen = false, after, limit = Infinity } = query;
    checkEntryLimit(query.limit);
    const lowest = includeHidden || onlyUnseen ? 0 : visible;
    const sql = onlyUnseen ? this.#sql.readUnseen : this.#sql.readRows;
    const start = after === undefined ? undefined : yield* this.#rowOf(session, after);
    if (after !== undefined && (start === undefined || start.visibility < lowest))
      throw missingAfter(sessionId, after);
    const entries: StoredEntry[] = [];
    let skipped = start === undefined ? 0 : nameOf(after as string).number - start.number + 1;
    const most = limit === Infinity ? noLimit : rowsPerQuery;
    let from = start === undefined ? this.#dialect.placeBefore(session) : start.place - 1;
    while (entries.length < limit) {
      const rows = yield* all<EntryRow>(sql, session, from, lowest, most);
      const decode = yield* this.decoder(rows);
      for (const row of rows) {
        if (entries.length >= limit) break;
        const visibility = visibilities[row.visibility] ?? "hidden";
        for (const entry of decode(row).slice(skipped)) entries.push({ entry, visibility });
        skipped = 0;
      }
      if (rows.length < most) break;
      from = rows.at(-1)?.place ?? from;
    }
    return limit === Infinity ? entries : entries.slice(0, limit);
  }

  /**
   * N5: returns the path to an entry. It reads the rows of the path, and few other rows. Call it inside a
   * transaction.
   */
  *path(
    session: number,
    leafId: string | null,
    from: "root" | "compaction",
    limit?: number,
  ): Work<readonly SessionEntry[]> {
    const { entriesAhead } = this.#dialect;
    const path = new PathCollector(from, limit);
    let near: readonly EntryRow[] = [];
    let decode = yield* this.decoder(near);
    for (let id = leafId; id !== null;) {
      const name = nameOf(id);
      let row = near.find((each) => holds(each, name));
      if (row === undefined) {
        row = yield* this.#rowOf(session, id);
        if (row === undefined) break;
        // Most often the rows right before belong to the path, too.
        near =
          entriesAhead > 1
            ? yield* all<EntryRow>(this.#sql.rowsBefore, session, row.place, entriesAhead)
            : [row];
        decode = yield* this.decoder(near);
      }
      if (row.visibility !== visible) break;
      const entries = decode(row).slice(0, name.number - row.number + 1);
      if (!entries.toReversed().every((entry) => path.add(entry))) break;
      id = entries[0]?.parentId ?? null;
    }
    return path.take();
  }

  /**
   * N5: returns the rows of the path to an entry, newest first. It does not read the large values of the rows.
   * While the path follows the order in which entries were appended, it reads several rows with one statement.
   */
  *rowsTo(session: number, leafId: string): Work<readonly PathRow[]> {
    const path: PathRow[] = [];
    const met = new Set<number>();
    let near: readonly EntryRow[] = [];
    let next = 0;
    let ahead = 1;
    for (let id: string | null = leafId; id !== null;) {
      const name = nameOf(id);
      let row = near[next++];
      if (row === undefined || !holds(row, name)) {
        // A row that was read in vain means that the path has left the order of appending.
        ahead = row === undefined ? Math.min(ahead * 2, rowsPerQuery) : 1;
        row = yield* this.#rowOf(session, id);
        if (row === undefined) break;
        near = yield* all<EntryRow>(this.#sql.rowsBefore, session, row.place, ahead);
        next = 1;
      }
      // A row that is met again closes a circle.
      if (row.visibility !== visible || met.has(row.place)) break;
      met.add(row.place);
      const parentId = parentOf(row);
      path.push({ row, count: name.number - row.number + 1, parentId });
      id = parentId;
    }
    return path;
  }

  /** Returns the visible labels of a session in the order in which they were appended. */
  *labels(session: number): Work<readonly SessionEntry[]> {
    const rows = yield* all<EntryRow>(this.#sql.labels, session);
    const decode = yield* this.decoder(rows);
    return rows.flatMap(decode);
  }

  *has(session: number, entryId: string): Work<boolean> {
    return (yield* this.#markOf(session, entryId)) !== undefined;
  }

  *isVisible(session: number, entryId: string): Work<boolean> {
    return (yield* this.#markOf(session, entryId))?.visibility === visible;
  }

  /** Returns the row that contains one of these entries, or the last row before them. */
  lastBefore(session: number, { stem, number }: EntryName, count: number): Work<EntryMark | undefined> {
    return get<EntryMark>(lastRowBefore, session, stem, number + count);
  }

  /** Returns the current entries for root tasks (N2) and for child tasks (N3). */
  *leaves(session: number): Work<{ readonly leafId: string | null; readonly lastId: string | null }> {
    const last = yield* get<EntryRow>(this.#sql.lastRow, session, 1);
    const lastId = yield* this.#leafAfter(last);
    if ((last?.task ?? 0) === 0) return { leafId: lastId, lastId };
    const leaf = yield* get<EntryRow>(this.#sql.lastRow, session, 0);
    return { leafId: yield* this.#leafAfter(leaf), lastId };
  }

  /** Returns the name that the last `session_info` entry sets. */
  *name(session: number): Work<string | null> {
    const row = yield* get<EntryRow>(this.#sql.lastOfType, session, "session_info");
    const entry = row === undefined ? undefined : yield* this.#lastEntry(row);
    return entry?.type === "session_info" ? entry.name : null;
  }

  /** Returns the title of the session, which comes from its messages. */
  *title(session: number): Work<string | null> {
    for (let from = this.#dialect.placeBefore(session); ;) {
      const rows = yield* all<EntryRow>(this.#sql.messagesFrom, session, from);
      const decode = yield* this.decoder(rows);
      for (const row of rows)
        for (const entry of decode(row)) {
          const title = titleOf(entry);
          if (title !== null) return title;
        }
      const last = rows.at(-1);
      if (last === undefined) return null;
      from = last.place;
    }
  }

  /** Returns a function that decodes any of these rows. The contents of all rows are read with one statement. */
  *decoder(rows: readonly EntryRow[]): Work<(row: EntryRow) => SessionEntry[]> {
    const contents = yield* this.#contents.load(rows.map(({ refs }) => refs));
    return (row) => entriesIn(row, restsOf(row, contents));
  }

  *#rowOf(session: number, entryId: string): Work<EntryRow | undefined> {
    const { stem, number } = nameOf(entryId);
    const row = yield* get<EntryRow>(this.#sql.rowAt, session, stem, number);
    return row !== undefined && row.number + row.count > number ? row : undefined;
  }

  *#markOf(session: number, entryId: string): Work<EntryMark | undefined> {
    const name = nameOf(entryId);
    const row = yield* this.lastBefore(session, name, 1);
    return row !== undefined && row.number + row.count > name.number ? row : undefined;
  }

  *#lastEntry(row: EntryRow): Work<SessionEntry | undefined> {
    return (yield* this.decoder([row]))(row).at(-1);
  }

  *#leafAfter(row: EntryRow | undefined): Work<string | null> {
    if (row === undefined) return null;
    if (row.type !== "leaf") return idAfter(row, row.count - 1);
    const entry = yield* this.#lastEntry(row);
    return entry?.type === "leaf" ? entry.targetId : null;
  }
}

function holds({ stem, number, count }: EntryRow, name: EntryName): boolean {
  return stem === name.stem && number <= name.number && number + count > name.number;
}

/**
 * Matches the parent at the beginning of a body. Parsing the whole body would take a fifth of the time of a fork.
 * Bench: `growth`, row "fork".
 */
const leadingParent = /^\[\{"parentId":("(?:[^"\\]|\\.)*"|null)[,}]/u;

function parentOf({ body }: EntryRow): string | null {
  const [, parent] = leadingParent.exec(body) ?? [];
  if (parent !== undefined) return JSON.parse(parent) as string | null;
  const [first] = JSON.parse(body) as readonly EntryRest[];
  return (first?.["parentId"] ?? null) as string | null;
}

function restsOf({ body, refs }: EntryRow, contents: ReadonlyMap<string, string>): readonly EntryRest[] {
  try {
    return joinText(body, refs, contents) as readonly EntryRest[];
  } catch (error) {
    throw new Fault("store_corrupt", "a content of a session entry is missing", { cause: error });
  }
}
