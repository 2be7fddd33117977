import type { CommitRow, CommitText, WithContents } from "../../codec/commit-row.ts";
import { setImmediate } from "node:timers/promises";
import {
  chainStart,
  eraseCommit,
  Fault,
  type Commit,
  type Event,
  type SessionEntry,
  type SessionId,
} from "../../../../kernel/index.ts";
import { decodeCommit } from "../../codec/commit-codec.ts";
import type { EntryName } from "../../codec/entry-batch.ts";
import { hashesIn, joinText, type LargeValue, type SplitText } from "../../codec/large-values.ts";
import type { StoredCommit } from "../../codec/stored-commit.ts";
import { CommitPlaces } from "./commit-places.ts";
import type { ApprovalRow } from "../../sql/open-approvals.ts";
import type { ContentRows } from "../../sql/content-rows.ts";
import { entryColumns, type EntryRow, type EntryRows } from "../../sql/entry-rows.ts";
import type { Database } from "../db/database.ts";
import { sqliteDialect } from "../db/dialect.ts";
import type { Tables } from "../db/tables.ts";
import {
  lastFreshMark,
  lastFreshLink,
  lastFreshRow,
  pageRows,
  wholeRows,
  placedMarks,
  commitTexts,
  placedMark,
  placeOf,
  fresh,
  marks,
  type Select,
  type Mark,
  type LinkMark,
} from "./commit-selects.ts";
import { erasuresOf } from "../../codec/erasures.ts";
import { OwnerKind } from "../../codec/owner-kind.ts";
import { tenantText, type RunKey } from "../../codec/stored-run.ts";
import type { FindEntries } from "../../codec/stored-change.ts";
import type { Position } from "../../codec/commit-draft.ts";

const noEntries: FindEntries = () => [];
const namedEntries = `SELECT ${entryColumns(sqliteDialect)} FROM entries
  WHERE session = (SELECT id FROM sessions WHERE session_id = ?1) AND stem = ?2
    AND number < ?3 + ?4 AND number + count > ?3 ORDER BY number`;

/**
 * Reads and writes the commits of runs. The table `places` lists a run's placed commits; the last few commits of
 * all runs are fresh and not in the table. A commit changes only from fresh to placed. Therefore a reader looks for
 * placed commits first, then for fresh ones, and repeats both once if it found neither.
 */
export class CommitRows {
  readonly #tables: Tables;
  readonly #database: Database;
  readonly #contents: ContentRows;
  readonly #entries: EntryRows;
  readonly #places: CommitPlaces;

  constructor(tables: Tables, contents: ContentRows, entries: EntryRows) {
    this.#tables = tables;
    this.#database = tables.database;
    this.#contents = contents;
    this.#entries = entries;
    this.#places = new CommitPlaces(tables.database);
  }

  /** Corrects the count of fresh commits and places them, if there are too many. */
  open(): void {
    this.#places.open();
  }

  /** Whether there are so many fresh commits that the next commit must place them. */
  get isCrowded(): boolean {
    return this.#places.isCrowded;
  }

  /**
   * Records that a commit was added under this row id, and stores its large values. The caller must be inside the
   * commit's transaction if `isCrowded` is true or there are large values.
   */
  addedNow(run: RunKey, id: number, values: readonly LargeValue[]): void {
    if (values.length > 0) this.#keepNow(run, id, values);
    this.#places.addedNow();
  }

  #keepNow({ tenantId }: RunKey, id: number, values: readonly LargeValue[]): void {
    const owner = { kind: OwnerKind.COMMIT, id };
    this.#tables.now(this.#contents.keep(tenantText(tenantId), owner, values));
  }

  /** The number of the run's next commit. */
  endNumber({ id }: RunKey): number {
    const last = this.#database.get<Mark>(lastFreshMark, id);
    return last === undefined ? this.#places.end(id) : last.number + 1;
  }

  /** Returns the number of the run's next commit and the sequence number of its next event. */
  end(run: RunKey): { readonly number: number; readonly seq: number } {
    const late = this.#database.get<Mark>(lastFreshMark, run.id);
    if (late !== undefined) return { number: late.number + 1, seq: late.nextEvent };
    const number = this.#places.end(run.id);
    if (number === 0) return { number, seq: 0 };
    const last = this.#mark(run, number - 1);
    if (last === undefined) throw missing(run, number - 1);
    return { number, seq: last.nextEvent };
  }

  position(run: RunKey): Position {
    const last = this.#database.get<LinkMark>(lastFreshLink, run.id) ?? this.#lastPlaced(run);
    if (last === undefined) return { number: 0, seq: 0, link: chainStart(run) };
    return { number: last.number + 1, seq: last.nextEvent, link: last.link };
  }

  last(run: RunKey): CommitRow | undefined {
    const late = this.#database.get<CommitRow>(lastFreshRow, run.id);
    return late === undefined ? this.#lastPlaced(run) : this.#whole(wholeRows, run, [late])[0];
  }

  #lastPlaced(run: RunKey): CommitRow | undefined {
    const number = this.#places.end(run.id);
    if (number === 0) return undefined;
    const last = this.row(run, number - 1);
    if (last === undefined) throw missing(run, number - 1);
    return last;
  }

  row(run: RunKey, number: number): CommitRow | undefined {
    return this.page(run, number, number + 1)[0];
  }

  /**
   * Returns the number of the commit that contains the event with this sequence number, by binary search. If no
   * commit contains it, returns the number of the next commit.
   */
  numberOf(run: RunKey, seq: number): number {
    const marksOfFresh = this.#database.all<Mark>(`SELECT ${marks} ${fresh} ORDER BY id`, run.id);
    const [first] = marksOfFresh;
    let low = 0;
    let high = first?.number ?? this.endNumber(run);
    while (low < high) {
      const middle = (low + high) >>> 1;
      const mark = this.#mark(run, middle);
      // A commit without a place follows all placed commits, so the search continues below it.
      if (mark !== undefined && mark.nextEvent <= seq) low = middle + 1;
      else high = middle;
    }
    if (first === undefined || low < first.number) return low;
    return marksOfFresh.find(({ nextEvent }) => nextEvent > seq)?.number ?? this.endNumber(run);
  }

  /**
   * Returns commits in order, at most one page. It returns fewer if the range begins with placed commits and
   * continues with fresh ones.
   */
  page(run: RunKey, from: number, end: number): CommitRow[] {
    return this.#page(wholeRows, run, from, end);
  }

  /** Loads the contents to which rows refer. A row that was deleted in the meantime is left out. */
  #whole<Row extends Mark & Referring>(select: Select<Row>, run: RunKey, rows: Row[]): Row[] {
    return rows.some(hasRefs) ? rows.flatMap((row) => this.#wholeRow(select, run, row)) : rows;
  }

  /**
   * Loads the contents of a row. If a content is missing, another process has deleted or erased the commit after
   * the row was read; the row is then read again.
   */
  #wholeRow<Row extends Mark & Referring>(select: Select<Row>, run: RunKey, read: Row): Row | [] {
    const row = this.#withContents(read);
    if (row !== undefined) return row;
    const [again] = this.#rowsOf(select, run, read.number, read.number + 1);
    return again === undefined ? [] : (this.#withContents(again) ?? again);
  }

  /** Adds the contents to a row. Returns `undefined` if a content is missing. */
  #withContents<Row extends Referring>(row: Row): Row | undefined {
    const { refs } = row;
    if (refs === undefined || refs === null) return row;
    const contents = this.#tables.now(this.#contents.load([refs]));
    return hashesIn(refs).every((hash) => contents.has(hash)) ? { ...row, contents } : undefined;
  }

  /**
   * Replaces a commit by the part that retention keeps, and sets the hash (seal) that proves the original. Call it
   * inside a transaction.
   */
  overwriteNow(run: RunKey, { id }: CommitRow, { text, refs, values }: SplitText, seal: string): void {
    this.#database.run(
      "UPDATE commits SET body = ?2, refs = ?3, seal = ?4 WHERE id = ?1",
      id,
      text,
      refs,
      seal,
    );
    this.#keepNow(run, id, values);
    this.#tables.now(this.#contents.keepOnly({ kind: OwnerKind.COMMIT, id }, refs));
  }

  /**
   * Returns the commits of one page that have events. `next` is the number that follows that of the last commit of
   * the page.
   */
  eventPage(run: RunKey, from: number, end: number): { readonly rows: CommitRow[]; readonly next: number } {
    const found = this.#page(placedMarks, run, from, end);
    const withEvents = found.filter(({ nextEvent }, index) => nextEvent > (found[index - 1]?.nextEvent ?? 0));
    const ids = withEvents.map(({ id }) => id);
    return {
      rows: this.#whole(wholeRows, run, wholeRows.lying(this.#database, ids)),
      next: (found.at(-1)?.number ?? end) + 1,
    };
  }

  #page<Row extends Mark & Referring>(select: Select<Row>, run: RunKey, from: number, end: number): Row[] {
    return this.#whole(select, run, this.#rowsOf(select, run, from, end));
  }

  #rowsOf<Row extends Mark>(select: Select<Row>, run: RunKey, from: number, end: number): Row[] {
    for (let look = 0; look < 2; look++) {
      const rows = this.#placed(select, run, from, end);
      if (rows.length > 0) return rows;
      const late = select.late(this.#database, run, from, end);
      if (late.length > 0) return late;
    }
    return [];
  }

  /** Yields the commits from `from` up to, but not including, `end` that have events, one page at a time. */
  async *eventPages(run: RunKey, from: number, end: number): AsyncIterable<readonly CommitRow[]> {
    for (let next = from; next < end;) {
      const start = next;
      const page = await this.#database.patiently(() => this.eventPage(run, start, end));
      yield page.rows;
      ({ next } = page);
      if (next < end) await setImmediate();
    }
  }

  /**
   * Yields the commits from `from` up to, but not including, `end`, one page at a time. Between two pages it holds
   * no lock or cursor of the database.
   */
  pages(run: RunKey, from: number, end: number): AsyncIterable<readonly CommitRow[]> {
    return this.#pages(wholeRows, run, from, end);
  }

  /** Yields commits like `pages`, but reads only the columns that are needed to decode them. */
  texts(run: RunKey, from: number, end: number): AsyncIterable<readonly CommitText[]> {
    return this.#pages(commitTexts, run, from, end);
  }

  async *#pages<Row extends Mark & Referring>(
    select: Select<Row>,
    run: RunKey,
    from: number,
    end: number,
  ): AsyncIterable<readonly Row[]> {
    let next = from;
    while (next < end) {
      const start = next;
      const rows = await this.#database.patiently(() => this.#page(select, run, start, end));
      const last = rows.at(-1);
      if (last === undefined) return;
      yield rows;
      next = last.number + 1;
      if (next < end) await setImmediate();
    }
  }

  /** Returns all commits of a run if they fit into one page, otherwise `undefined`. */
  onlyPage(run: RunKey): readonly CommitText[] | undefined {
    const end = this.endNumber(run);
    if (end > pageRows) return undefined;
    const rows = this.#page(commitTexts, run, 0, end);
    // The page is shorter if the run has both placed and fresh commits.
    return rows.length === end ? rows : undefined;
  }

  /** Decodes a commit without the text that retention erased, even if that text is still in the file. */
  decode(run: RunKey, row: CommitText): Commit {
    const commit = this.decodeWhole(run, row);
    const erasures = erasuresOf(run);
    return erasures.length === 0 ? commit : eraseCommit(commit, erasures);
  }

  /** Returns the events of the commit that `decode` returns. */
  events(run: RunKey, row: CommitText): readonly Event[] {
    const commit = this.decodeAlone(run, row);
    const erasures = erasuresOf(run);
    return (erasures.length === 0 ? commit : eraseCommit(commit, erasures)).events ?? [];
  }

  /** Returns the events of the commit that asks a question. */
  eventsOf(asked: ApprovalRow): readonly Event[] {
    const row = this.row(asked, this.numberOf(asked, asked.seq));
    return row === undefined ? [] : this.events(asked, row);
  }

  /** Decodes a commit as stored, without the session entries that it refers to. This reads no sessions. */
  decodeAlone(run: RunKey, row: CommitText): Commit {
    return this.#decode(run, row, noEntries);
  }

  decodeWhole(run: RunKey, row: CommitText): Commit {
    return this.#decode(run, row, this.#findEntries);
  }

  /**
   * Returns `count` entries from this one on. Removed entries are left out. If a content is missing, another
   * process has removed the entries after their rows were read; the rows are then read again.
   */
  readonly #findEntries = (sessionId: SessionId, name: EntryName, count: number): readonly SessionEntry[] => {
    try {
      return this.#entriesFrom(sessionId, name, count);
    } catch (error) {
      if (!Fault.is(error) || error.code !== "store_corrupt") throw error;
      return this.#entriesFrom(sessionId, name, count);
    }
  };

  #entriesFrom(sessionId: SessionId, { stem, number }: EntryName, count: number): readonly SessionEntry[] {
    const rows = this.#database.all<EntryRow>(namedEntries, sessionId, stem, number, count);
    const decode = this.#tables.now(this.#entries.decoder(rows));
    return rows.flatMap((row) =>
      decode(row).slice(Math.max(0, number - row.number), number + count - row.number),
    );
  }

  #decode(run: RunKey, row: CommitText, findEntries: FindEntries): Commit {
    const { runId, agentId, sessionId } = run;
    const { number, at, nextEvent, body, refs, contents } = row;
    try {
      const stored = joinText(body, refs, contents) as StoredCommit;
      return decodeCommit(stored, { runId, agentId, sessionId, number, at, nextEvent }, findEntries);
    } catch (error) {
      throw new Fault("store_corrupt", `commit ${row.number} of ${run.runId} cannot be read back`, {
        cause: error,
        details: { runId: run.runId, number: row.number },
      });
    }
  }

  /** Removes up to `limit` commits of a run and returns how many were removed. Call inside a transaction. */
  removeNow(run: number, limit: number): number {
    return this.#places.removeNow(run, limit);
  }

  #placed<Row extends Mark>(select: Select<Row>, { id }: RunKey, from: number, end: number): Row[] {
    const rows: Row[] = [];
    let next = from;
    while (rows.length < pageRows && next < end) {
      const place = this.#places.find(placeOf, id, next);
      const start = next - (place?.number ?? next);
      const ids = place?.ids.slice(start, start + Math.min(pageRows - rows.length, end - next)) ?? [];
      if (ids.length === 0) return rows;
      next += ids.length;
      rows.push(...select.lying(this.#database, ids));
    }
    return rows;
  }

  /** Reads the place of a commit in the log: its number, and the sequence number of the first event after it. */
  #mark({ id }: RunKey, number: number): Mark | undefined {
    return this.#database.get<Mark>(placedMark, id, number);
  }
}

/** A row that may refer to contents, if its columns were read. */
type Referring = WithContents & { readonly refs?: string | null };

function hasRefs({ refs }: Referring): boolean {
  return refs !== undefined && refs !== null;
}

/** Creates the fault for a commit whose row was removed from the file. */
export function missing({ runId }: RunKey, number: number): Fault {
  return new Fault("store_corrupt", `commit ${number} of ${runId} is missing`, {
    details: { runId, number },
  });
}
