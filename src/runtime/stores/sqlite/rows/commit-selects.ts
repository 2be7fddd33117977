import type { CommitRow, CommitText } from "../../codec/commit-row.ts";
import type { Database } from "../db/database.ts";
import type { RunKey } from "../../codec/stored-run.ts";

export type Mark = Pick<CommitRow, "number" | "nextEvent">;
type PlacedMark = Mark & Pick<CommitRow, "id">;
export type LinkMark = Mark & Pick<CommitRow, "link">;

const columns = "id, number, at, next_event AS nextEvent, link, body, refs, seal";
export const marks = "number, next_event AS nextEvent";
export const fresh = "FROM commits WHERE id > (SELECT through FROM placed) AND run = ?";
export const lastFreshMark = `SELECT ${marks} ${fresh} ORDER BY id DESC LIMIT 1`;
export const lastFreshLink = `SELECT ${marks}, link ${fresh} ORDER BY id DESC LIMIT 1`;
export const lastFreshRow = `SELECT ${columns} ${fresh} ORDER BY id DESC LIMIT 1`;

/** Reads commit rows with one list of columns. */
export class Select<Row> {
  readonly #read: (database: Database, sql: string, ...values: (number | string)[]) => Row[];
  readonly #late: string;
  readonly #between: string;
  readonly #among: string;

  constructor(
    what: string,
    read: (database: Database, sql: string, ...values: (number | string)[]) => Row[],
  ) {
    this.#read = read;
    // SQLite plans a statement again for each value of a limit that is only a parameter. `? + 0` avoids that.
    this.#late = `SELECT ${what} ${fresh} AND number >= ? AND number < ? ORDER BY id DESC LIMIT ? + 0`;
    this.#between = `SELECT ${what} FROM commits WHERE id BETWEEN ? AND ? ORDER BY id`;
    this.#among = `SELECT ${what} FROM commits WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id`;
  }

  /**
   * Reads one page of the fresh commits, from the last one backwards, because most readers want commits that were
   * just written.
   */
  late(database: Database, { id }: RunKey, from: number, end: number): Row[] {
    const most = Math.min(end - from, pageRows);
    return this.#read(database, this.#late, id, from, from + most, most).toReversed();
  }

  /** Reads the rows with these ids, which must be in ascending order. */
  lying(database: Database, ids: readonly number[]): Row[] {
    const [first, last] = [ids[0] ?? 0, ids.at(-1) ?? 0];
    return last - first < ids.length
      ? this.#read(database, this.#between, first, last)
      : this.#read(database, this.#among, JSON.stringify(ids));
  }
}

/** Maximum number of rows per read. Between two reads, other work of the process runs. */
export const pageRows = 256;

export const wholeRows = new Select(columns, (database, sql, ...values) =>
  database.all<CommitRow>(sql, ...values),
);
export const placedMarks = new Select(`id, ${marks}`, (database, sql, ...values) =>
  database.all<PlacedMark>(sql, ...values),
);
export const commitTexts = new Select("number, at, next_event, body, refs", (database, sql, ...values) =>
  database
    .lists<[number, number, number, string, string | null]>(sql, ...values)
    .map(([number, at, nextEvent, body, refs]): CommitText => ({ number, at, nextEvent, body, refs })),
);

export const placedMark = `SELECT ${marks} FROM commits WHERE id =
  (SELECT commit_ids ->> CAST(?2 - number AS INTEGER)
   FROM places WHERE run = ?1 AND number <= ?2 ORDER BY number DESC LIMIT 1)`;
const places = "SELECT number, commit_ids AS ids FROM places WHERE run = ?";
export const firstPlace = `${places} ORDER BY number LIMIT 1`;
export const placeOf = `${places} AND number <= ? ORDER BY number DESC LIMIT 1`;
