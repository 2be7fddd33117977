import {
  Fault,
  PathCollector,
  type EntryQuery,
  type SessionEntry,
  type SessionId,
  type StoredEntry,
} from "../../../../kernel/index.ts";
import { idAfter, nameOf, type EntryName, type EntryRest } from "../../codec/entry-batch.ts";
import { joinText } from "../../codec/large-values.ts";
import type { NamedEntries } from "../../codec/stored-change.ts";
import { checkEntryLimit, missingAfter } from "../../session-cursor.ts";
import {
  entriesIn,
  visibilities,
  visible,
  type EntryMark,
  type EntryRow as StoredRow,
} from "../../sql/entry-row.ts";
import type { Queries } from "../db/queries.ts";
import { loadContents } from "./content-rows.ts";

interface EntryRow extends StoredRow {
  readonly place: number;
}

const rowColumns = `place, stem, number, count, entries.run_id AS "runId", task, visibility, type, body, refs`;

const readRows = `SELECT ${rowColumns} FROM {entries} AS entries WHERE session = $1 AND place >= $2
    AND visibility >= $3 ORDER BY place LIMIT $4`;
const readUnseen = `SELECT ${rowColumns} FROM {entries} AS entries WHERE session = $1 AND place >= $2
    AND visibility >= $3 AND visibility < ${visible} ORDER BY place LIMIT $4`;
const findNamed = `SELECT wanted.index - 1 AS index, ${rowColumns}
  FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) WITH ORDINALITY AS wanted (in_session, of_stem, first, length, index)
  JOIN {sessions} AS sessions ON sessions.session_id = wanted.in_session
  JOIN {entries} AS entries ON entries.session = sessions.id AND entries.stem = wanted.of_stem
    AND entries.number < wanted.first + wanted.length AND entries.number + entries.count > wanted.first
  ORDER BY wanted.index, entries.number`;
const rowAt = `SELECT ${rowColumns} FROM {entries} AS entries
  WHERE session = $1 AND stem = $2 AND number <= $3 ORDER BY number DESC LIMIT 1`;
const lastRowBefore = `SELECT number, count, visibility FROM {entries}
  WHERE session = $1 AND stem = $2 AND number < $3 ORDER BY number DESC LIMIT 1`;
const lastRow = `SELECT ${rowColumns} FROM {entries} AS entries WHERE session = $1 AND visibility = ${visible}
    AND ($2::integer > 0 OR coalesce(task, 0) = 0) AND type NOT IN ('label', 'session_info')
  ORDER BY place DESC LIMIT 1`;
const lastOfType = `SELECT ${rowColumns} FROM {entries} AS entries WHERE session = $1 AND type = $2 ORDER BY place DESC LIMIT 1`;
const messagesFrom = `SELECT ${rowColumns} FROM {entries} AS entries WHERE session = $1 AND place > $2
    AND type = 'message' ORDER BY place LIMIT 16`;
const rowsBefore = `SELECT ${rowColumns} FROM {entries} AS entries WHERE session = $1 AND place <= $2 ORDER BY place DESC LIMIT 32`;

/** Number of rows that one query reads for a page of entries. */
const rowsPerQuery = 64;
/** A number that no session reaches. */
const noLimit = 2 ** 31 - 1;

/** Reads the entries of sessions. `session` is the id of a row of `sessions`. */
export class EntryRows {
  /** Returns the entries of a session in the order of appending. Call inside a transaction. */
  async read(
    queries: Queries,
    session: number,
    sessionId: SessionId,
    query: EntryQuery,
  ): Promise<readonly StoredEntry[]> {
    const { includeHidden = false, onlyUnseen = false, after, limit = Infinity } = query;
    checkEntryLimit(query.limit);
    const lowest = includeHidden || onlyUnseen ? 0 : visible;
    const sql = onlyUnseen ? readUnseen : readRows;
    const start = after === undefined ? undefined : await this.#rowOf(queries, session, after);
    if (after !== undefined && (start === undefined || start.visibility < lowest))
      throw missingAfter(sessionId, after);
    const entries: StoredEntry[] = [];
    let skipped = start === undefined ? 0 : nameOf(after as string).number - start.number + 1;
    const most = limit === Infinity ? noLimit : rowsPerQuery;
    for (let from = start?.place ?? 0; entries.length < limit;) {
      const rows = await queries.all<EntryRow>(sql, session, from, lowest, most);
      for (const [row, found] of await entriesOf(queries, rows)) {
        const visibility = visibilities[row.visibility] ?? "hidden";
        for (const entry of found.slice(skipped)) entries.push({ entry, visibility });
        skipped = 0;
      }
      if (rows.length < most) break;
      from = (rows.at(-1)?.place ?? from) + 1;
    }
    return limit === Infinity ? entries : entries.slice(0, limit);
  }

  /** N5: returns the path to a leaf. It reads only the rows of the path. Call inside a transaction. */
  async path(
    queries: Queries,
    session: number,
    leafId: string | null,
    from: "root" | "compaction",
  ): Promise<readonly SessionEntry[]> {
    const path = new PathCollector(from);
    let near: readonly DecodedRow[] = [];
    for (let id = leafId; id !== null;) {
      const name = nameOf(id);
      let found = near.find(([row]) => holds(row, name));
      if (found === undefined) {
        const row = await this.#rowOf(queries, session, id);
        if (row === undefined) break;
        // Most often the rows right before belong to the path, too.
        near = await entriesOf(queries, await queries.all<EntryRow>(rowsBefore, session, row.place));
        found = near[0];
      }
      if (found?.[0].visibility !== visible) break;
      const entries = found[1].slice(0, name.number - found[0].number + 1);
      if (!entries.toReversed().every((entry) => path.add(entry))) break;
      id = entries[0]?.parentId ?? null;
    }
    return path.take();
  }

  /** Returns the named entries, one list for each name, without entries that were removed. */
  async findAll(
    queries: Queries,
    named: readonly NamedEntries[],
  ): Promise<readonly (readonly SessionEntry[])[]> {
    const rows = await queries.all<EntryRow & { readonly index: number }>(
      findNamed,
      named.map(({ sessionId }) => sessionId),
      named.map(({ first }) => first.stem),
      named.map(({ first }) => first.number),
      named.map(({ count }) => count),
    );
    const found = named.map((): SessionEntry[] => []);
    for (const [row, entries] of await entriesOf(queries, rows)) {
      const { first, count } = named[row.index] as NamedEntries;
      const own = entries.slice(Math.max(0, first.number - row.number), first.number + count - row.number);
      found[row.index]?.push(...own);
    }
    return found;
  }

  async has(queries: Queries, session: number, entryId: string): Promise<boolean> {
    return (await this.#holds(queries, session, entryId)) !== undefined;
  }

  async isVisible(queries: Queries, session: number, entryId: string): Promise<boolean> {
    return (await this.#holds(queries, session, entryId))?.visibility === visible;
  }

  /** Returns the row that holds one of these entries, or the last row before them. */
  lastBefore(
    queries: Queries,
    session: number,
    { stem, number }: EntryName,
    count: number,
  ): Promise<EntryMark | undefined> {
    return queries.get<EntryMark>(lastRowBefore, session, stem, number + count);
  }

  /** Returns the leaves of root tasks (N2) and of child tasks (N3). */
  async leaves(
    queries: Queries,
    session: number,
  ): Promise<{ readonly leafId: string | null; readonly lastId: string | null }> {
    const last = await queries.get<EntryRow>(lastRow, session, 1);
    const lastId = await leafAfter(queries, last);
    if ((last?.task ?? 0) === 0) return { leafId: lastId, lastId };
    return { leafId: await leafAfter(queries, await queries.get<EntryRow>(lastRow, session, 0)), lastId };
  }

  /** Returns the name that the last `session_info` entry sets. */
  async name(queries: Queries, session: number): Promise<string | null> {
    const row = await queries.get<EntryRow>(lastOfType, session, "session_info");
    const entry = row === undefined ? undefined : await lastEntry(queries, row);
    return entry?.type === "session_info" ? entry.name : null;
  }

  /** Yields the messages of the session, in the order of appending. */
  async *messages(queries: Queries, session: number): AsyncIterable<SessionEntry> {
    for (let from = 0; ;) {
      const rows = await queries.all<EntryRow>(messagesFrom, session, from);
      for (const [, entries] of await entriesOf(queries, rows)) yield* entries;
      const last = rows.at(-1);
      if (last === undefined) return;
      from = last.place;
    }
  }

  async #rowOf(queries: Queries, session: number, entryId: string): Promise<EntryRow | undefined> {
    const { stem, number } = nameOf(entryId);
    const row = await queries.get<EntryRow>(rowAt, session, stem, number);
    return row !== undefined && row.number + row.count > number ? row : undefined;
  }

  async #holds(queries: Queries, session: number, entryId: string): Promise<EntryMark | undefined> {
    const name = nameOf(entryId);
    const row = await this.lastBefore(queries, session, name, 1);
    return row !== undefined && row.number + row.count > name.number ? row : undefined;
  }
}

type DecodedRow = readonly [EntryRow, readonly SessionEntry[]];

function holds({ stem, number, count }: EntryRow, name: EntryName): boolean {
  return stem === name.stem && number <= name.number && number + count > name.number;
}

/** Returns each row with its entries. The contents of all rows are read with one query. */
async function entriesOf<Row extends EntryRow>(
  queries: Queries,
  rows: readonly Row[],
): Promise<readonly (readonly [Row, SessionEntry[]])[]> {
  const contents = await loadContents(
    queries,
    rows.map(({ refs }) => refs),
  );
  return rows.map((row) => [row, entriesIn(row, restsOf(row, contents))]);
}

function restsOf({ body, refs }: EntryRow, contents: ReadonlyMap<string, string>): readonly EntryRest[] {
  try {
    return joinText(body, refs, contents) as readonly EntryRest[];
  } catch (error) {
    throw new Fault("store_corrupt", "a content of a session entry is missing", { cause: error });
  }
}

async function lastEntry(queries: Queries, row: EntryRow): Promise<SessionEntry | undefined> {
  return (await entriesOf(queries, [row]))[0]?.[1].at(-1);
}

async function leafAfter(queries: Queries, row: EntryRow | undefined): Promise<string | null> {
  if (row === undefined) return null;
  if (row.type !== "leaf") return idAfter(row, row.count - 1);
  const entry = await lastEntry(queries, row);
  return entry?.type === "leaf" ? entry.targetId : null;
}
