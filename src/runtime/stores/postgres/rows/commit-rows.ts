import {
  chainStart,
  eraseCommit,
  Fault,
  missingRun,
  type Commit,
  type Event,
  type RunId,
  type SessionEntry,
} from "../../../../kernel/index.ts";
import { decodeCommit } from "../../codec/commit-codec.ts";
import type { Position } from "../../codec/commit-draft.ts";
import type { CommitRow } from "../../codec/commit-row.ts";
import { erasuresOf } from "../../codec/erasures.ts";
import { joinText, type LargeValue, type SplitText } from "../../codec/large-values.ts";
import { OwnerKind } from "../../codec/owner-kind.ts";
import { entriesNamedIn, type FindEntries, type NamedEntries } from "../../codec/stored-change.ts";
import type { StoredCommit } from "../../codec/stored-commit.ts";
import { tenantText, type RunKey } from "../../codec/stored-run.ts";
import type { ContentRows } from "../../sql/content-rows.ts";
import { entryColumns, type EntryRow, type EntryRows } from "../../sql/entry-rows.ts";
import type { Database } from "../db/database.ts";
import { postgresDialect } from "../db/dialect.ts";
import type { ApprovalRow } from "../../sql/open-approvals.ts";
import { runKeyColumns } from "../../sql/run-row.ts";
import { all, get, run as write, type Work } from "../../sql/work.ts";

const columns = `id, number, at, next_event AS "nextEvent", link, body, refs, seal`;
const lastRow = `SELECT ${columns} FROM {commits} WHERE run = $1 ORDER BY number DESC LIMIT 1`;
const lastMark = `SELECT number, next_event AS "nextEvent", link FROM {commits} WHERE run = $1 ORDER BY number DESC LIMIT 1`;
const markBefore = `SELECT number, next_event AS "nextEvent", link FROM {commits} WHERE run = $1 AND number < $2
  ORDER BY number DESC LIMIT 1`;
const between = `SELECT ${columns} FROM {commits} WHERE run = $1 AND number >= $2 AND number < $3 ORDER BY number LIMIT $4`;
const endOf = `SELECT ${runKeyColumns}, coalesce(last.number + 1, 0) AS number, coalesce(last.next_event, 0) AS seq
  FROM {runs} AS runs LEFT JOIN LATERAL
    (SELECT number, next_event FROM {commits} WHERE run = runs.id ORDER BY number DESC LIMIT 1) AS last ON true
  WHERE run_id = $1`;
const nextEventOf = `SELECT next_event AS "nextEvent" FROM {commits} WHERE run = $1 AND number = $2`;

const findNamed = `SELECT wanted.index - 1 AS index, ${entryColumns(postgresDialect)}
  FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) WITH ORDINALITY AS wanted (in_session, of_stem, first, length, index)
  JOIN {sessions} AS sessions ON sessions.session_id = wanted.in_session
  JOIN {entries} AS entries ON entries.session = sessions.id AND entries.stem = wanted.of_stem
    AND entries.number < wanted.first + wanted.length AND entries.number + entries.count > wanted.first
  ORDER BY wanted.index, entries.number`;

/** The end of the journal of a run. */
interface RunEnd {
  readonly run: RunKey;
  /** Number of the next commit. */
  readonly number: number;
  /** Seq of the next event. */
  readonly seq: number;
}

/** Maximum number of rows per read. */
const pageRows = 256;

const noEntries: FindEntries = () => [];

/** Reads and writes the commits of runs. */
export class CommitRows {
  readonly #database: Database;
  readonly #contents: ContentRows;
  readonly #entries: EntryRows;

  constructor(database: Database, contents: ContentRows, entries: EntryRows) {
    this.#database = database;
    this.#contents = contents;
    this.#entries = entries;
  }

  /**
   * Returns a run, the number of its next commit and the sequence number of its next event. Rejects with
   * `not_found`.
   */
  async end(runId: RunId): Promise<RunEnd> {
    const row = await this.#database.statements.get<RunKey & Omit<RunEnd, "run">>(endOf, runId);
    if (row === undefined) throw missingRun(runId);
    const { number, seq, ...run } = row;
    return { run, number, seq };
  }

  /** Returns the end of the journal, or the position of a stored commit. */
  *position(run: RunKey, number?: number): Work<Position> {
    const last =
      number === undefined
        ? yield* get<CommitRow>(lastMark, run.id)
        : yield* get<CommitRow>(markBefore, run.id, number);
    if (last === undefined) return { number: 0, seq: 0, link: chainStart(run) };
    return { number: last.number + 1, seq: last.nextEvent, link: last.link };
  }

  *last(run: RunKey): Work<CommitRow | undefined> {
    const row = yield* get<CommitRow>(lastRow, run.id);
    return row === undefined ? undefined : (yield* this.#withContents([row]))[0];
  }

  *row(run: RunKey, number: number): Work<CommitRow | undefined> {
    return (yield* this.page(run, number, number + 1))[0];
  }

  /** Returns commits in order, at most one page, with the contents that they refer to. */
  *page(run: RunKey, from: number, end: number): Work<readonly CommitRow[]> {
    const rows = yield* all<CommitRow>(between, run.id, from, Math.min(end, from + pageRows), pageRows);
    return yield* this.#withContents(rows);
  }

  /**
   * Returns the number of the commit that contains the event with this sequence number, by binary search among the
   * commits before `end`.
   */
  *numberOf(run: RunKey, seq: number, end: number): Work<number> {
    let [low, high] = [0, end];
    while (low < high) {
      const middle = (low + high) >>> 1;
      const mark = yield* get<Pick<CommitRow, "nextEvent">>(nextEventOf, run.id, middle);
      if (mark !== undefined && mark.nextEvent <= seq) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /**
   * Yields the commits from `from` up to, but not including, `end`, one page at a time. Each page is read from one
   * state of the database.
   */
  async *pages(run: RunKey, from: number, end: number): AsyncIterable<readonly CommitRow[]> {
    for (let next = from; next < end;) {
      const start = next;
      const rows = await this.#wholePage(run, start, end);
      const last = rows.at(-1);
      if (last === undefined) return;
      yield rows;
      next = last.number + 1;
    }
  }

  /**
   * Reads a page and its contents from one state of the database. In most cases there are no contents, and one
   * statement is enough.
   */
  async #wholePage(run: RunKey, from: number, end: number): Promise<readonly CommitRow[]> {
    const until = Math.min(end, from + pageRows);
    const rows = await this.#database.statements.all<CommitRow>(between, run.id, from, until, pageRows);
    if (rows.every(({ refs }) => refs === null)) return rows;
    return this.#database.read((queries) => queries.do(this.page(run, from, end)));
  }

  /** Yields decoded commits like `pages`, without the text that retention erased. */
  async *decodedPages(run: RunKey, from: number, end: number): AsyncIterable<readonly Commit[]> {
    for (let next = from; next < end;) {
      const start = next;
      const commits = await this.#database.read((queries) => queries.do(this.#decodedPage(run, start, end)));
      const last = commits.at(-1);
      if (last === undefined) return;
      yield commits;
      next = last.number + 1;
    }
  }

  *#decodedPage(run: RunKey, from: number, end: number): Work<readonly Commit[]> {
    return yield* this.decode(run, yield* this.page(run, from, end));
  }

  /** Stores the large values of a new commit. Call inside its transaction. */
  keep({ tenantId }: RunKey, id: number, values: readonly LargeValue[]): Work<void> {
    return this.#contents.keep(tenantText(tenantId), { kind: OwnerKind.COMMIT, id }, values);
  }

  /**
   * Replaces a commit by the part that retention keeps, and sets the hash (seal) that proves the original. Call it
   * inside a transaction.
   */
  *overwrite(
    run: RunKey,
    { id, number }: CommitRow,
    { text, refs, values, seal }: SplitText & { readonly seal: string },
  ): Work<void> {
    yield* write(
      "UPDATE {commits} SET body = $3, refs = $4, seal = $5 WHERE run = $1 AND number = $2",
      run.id,
      number,
      text,
      refs,
      seal,
    );
    yield* this.keep(run, id, values);
    yield* this.#contents.keepOnly({ kind: OwnerKind.COMMIT, id }, refs);
  }

  /** Decodes commits without the text that retention erased, even if that text is still in the table. */
  *decode(run: RunKey, rows: readonly CommitRow[]): Work<readonly Commit[]> {
    const commits = yield* this.decodeWhole(run, rows);
    const erasures = erasuresOf(run);
    return erasures.length === 0 ? commits : commits.map((commit) => eraseCommit(commit, erasures));
  }

  /** Returns the events of the commit that `decode` returns. */
  events(run: RunKey, row: CommitRow): readonly Event[] {
    const commit = this.decodeAlone(run, row);
    const erasures = erasuresOf(run);
    return (erasures.length === 0 ? commit : eraseCommit(commit, erasures)).events ?? [];
  }

  /** Returns the events of the commit that asks a question. */
  *eventsOf(asked: ApprovalRow): Work<readonly Event[]> {
    const row = yield* this.row(asked, asked.number ?? 0);
    return row === undefined ? [] : this.events(asked, row);
  }

  /** Decodes a commit as stored, without the session entries that it refers to. This reads no sessions. */
  decodeAlone(run: RunKey, row: CommitRow): Commit {
    return readable(run, row, () => decoded(run, row, storedOf(row), noEntries));
  }

  /** Decodes commits as stored. The session entries that they refer to are read with one query. */
  *decodeWhole(run: RunKey, rows: readonly CommitRow[]): Work<readonly Commit[]> {
    const stored = rows.map((row) => readable(run, row, () => storedOf(row)));
    const named = stored.flatMap(({ sessions }) =>
      sessions === undefined ? [] : entriesNamedIn(sessions, run),
    );
    const found = named.length === 0 ? [] : yield* this.#findNamed(named);
    const byName = new Map(named.map((each, index) => [textOfName(each), found[index] ?? []]));
    const find: FindEntries = (sessionId, first, count) =>
      byName.get(textOfName({ sessionId, first, count })) ?? [];
    return rows.map((row, index) =>
      readable(run, row, () => decoded(run, row, stored[index] as StoredCommit, find)),
    );
  }

  /** Returns the named entries, one list for each name, without entries that were removed. */
  *#findNamed(named: readonly NamedEntries[]): Work<readonly (readonly SessionEntry[])[]> {
    const rows = yield* all<EntryRow & { readonly index: number }>(
      findNamed,
      named.map(({ sessionId }) => sessionId),
      named.map(({ first }) => first.stem),
      named.map(({ first }) => first.number),
      named.map(({ count }) => count),
    );
    const found = named.map((): SessionEntry[] => []);
    const decode = yield* this.#entries.decoder(rows);
    for (const row of rows) {
      const { first, count } = named[row.index] as NamedEntries;
      const own = decode(row).slice(
        Math.max(0, first.number - row.number),
        first.number + count - row.number,
      );
      found[row.index]?.push(...own);
    }
    return found;
  }

  *#withContents(rows: readonly CommitRow[]): Work<readonly CommitRow[]> {
    if (rows.every(({ refs }) => refs === null)) return rows;
    const contents = yield* this.#contents.load(rows.map(({ refs }) => refs));
    return rows.map((row) => (row.refs === null ? row : { ...row, contents }));
  }
}

function textOfName({ sessionId, first, count }: NamedEntries): string {
  return `${first.number} ${count} ${JSON.stringify([sessionId, first.stem])}`;
}

function storedOf({ body, refs, contents }: CommitRow): StoredCommit {
  return joinText(body, refs, contents) as StoredCommit;
}

function decoded(run: RunKey, row: CommitRow, stored: StoredCommit, find: FindEntries): Commit {
  const { runId, agentId, sessionId } = run;
  const { number, at, nextEvent } = row;
  return decodeCommit(stored, { runId, agentId, sessionId, number, at, nextEvent }, find);
}

function readable<Value>({ runId }: RunKey, { number }: CommitRow, read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    throw new Fault("store_corrupt", `commit ${number} of ${runId} cannot be read back`, {
      cause: error,
      details: { runId, number },
    });
  }
}

/** Creates the fault for a commit whose row was removed from the table. */
export function missing({ runId }: RunKey, number: number): Fault {
  return new Fault("store_corrupt", `commit ${number} of ${runId} is missing`, {
    details: { runId, number },
  });
}
