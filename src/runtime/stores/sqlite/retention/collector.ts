import { setImmediate } from "node:timers/promises";
import { Chore } from "../../chore.ts";
import type { CommitRows } from "../rows/commit-rows.ts";
import { piecesPerContent } from "../../sql/content-rows.ts";
import { OwnerKind } from "../../codec/owner-kind.ts";
import type { Tables } from "../db/tables.ts";

/**
 * Target duration of one round of deletions, in milliseconds. After a longer round, the next round deletes half as
 * many rows; after a round of less than half this time, it deletes twice as many.
 */
const sliceMs = 1;
const mostRows = 4_096;
/**
 * Maximum number of pieces of a content that are deleted at once, because a piece is as large as many other rows
 * and is overwritten.
 */
const mostPieces = 1;

const removePieces = `DELETE FROM content_pieces WHERE id IN (SELECT id FROM content_pieces
  WHERE id >= ?1 * ${piecesPerContent} AND id < (?1 + 1) * ${piecesPerContent} LIMIT ?2)`;

/** Deletes at most `limit` rows that belong to a deleted row, and returns their number. */
type Remove = (id: number, limit: number) => number;

interface Kind {
  readonly table: string;
  /** The column whose value is NULL in a deleted row. */
  readonly name: string;
  readonly holds: readonly Remove[];
  /** Present if the freed space is overwritten, because a content may contain erased text. */
  readonly isOverwritten?: true;
}

/**
 * Deletes the rows of deleted runs, sessions and contents, in rounds of a few milliseconds. Readers already no
 * longer see them. If the process dies, the next process that opens the file continues.
 */
export class Collector {
  readonly #tables: Tables;
  readonly #kinds: readonly Kind[];
  #slice = 64;
  readonly #chore = new Chore(async () => {
    for (const kind of this.#kinds) await this.#collectKind(kind);
  });

  constructor(tables: Tables, rows: CommitRows) {
    this.#tables = tables;
    const rowsOf =
      (table: string, key: string, owner: string): Remove =>
      (id, limit) =>
        tables.database.run(
          `DELETE FROM ${table} WHERE (${key}) IN (SELECT ${key} FROM ${table} WHERE ${owner} = ? LIMIT ?)`,
          id,
          limit,
        );
    const contentsOf =
      (kind: number): Remove =>
      (id, limit) =>
        tables.database.run(
          `DELETE FROM content_owners WHERE kind = ?1 AND owner = ?2 AND content IN
             (SELECT content FROM content_owners WHERE kind = ?1 AND owner = ?2 LIMIT ?3)`,
          kind,
          id,
          limit,
        );
    this.#kinds = [
      {
        table: "runs",
        name: "run_id",
        holds: [
          (id, limit) => rows.removeNow(id, limit),
          rowsOf("mail", "id", "run"),
          rowsOf("mail_ids", "run, mail_id", "run"),
          rowsOf("deltas", "id", "run"),
          rowsOf("approvals", "place", "run"),
          rowsOf("run_metadata", "run", "run"),
          rowsOf("run_labels", "name, value, run", "run"),
          rowsOf("run_scores", "id", "run"),
          contentsOf(OwnerKind.RUN),
        ],
      },
      {
        table: "sessions",
        name: "session_id",
        holds: [rowsOf("entries", "id", "session"), contentsOf(OwnerKind.SESSION)],
      },
      // The last kind, because the rows of the other kinds own contents.
      {
        table: "contents",
        name: "hash",
        isOverwritten: true,
        holds: [(id, limit) => tables.database.run(removePieces, id, Math.min(limit, mostPieces))],
      },
    ];
  }

  /** Resolves when everything that was deleted before the call is freed. */
  collect(): Promise<void> {
    return this.#chore.ask();
  }

  stop(): void {
    this.#chore.stop();
  }

  async #collectKind(kind: Kind): Promise<void> {
    while (!this.#chore.isStopped) {
      // Most calls find nothing and need no write lock.
      if ((await this.#tables.read(() => this.#next(kind))) === undefined) return;
      await this.#tables.write({
        apply: () =>
          kind.isOverwritten === true
            ? this.#tables.database.overwriting(() => this.#collectSome(kind))
            : this.#collectSome(kind),
      });
      await setImmediate();
    }
  }

  /** Works for about `sliceMs`. */
  #collectSome(kind: Kind): void {
    const { table, name } = kind;
    const end = performance.now() + sliceMs;
    do {
      const id = this.#next(kind);
      if (id === undefined || !this.#empty(kind, id, end)) return;
      this.#tables.database.run(`DELETE FROM ${table} WHERE id = ? AND ${name} IS NULL`, id);
    } while (performance.now() < end);
  }

  #next({ table, name }: Kind): number | undefined {
    const row = this.#tables.database.get<{ readonly id: number }>(
      `SELECT id FROM ${table} WHERE ${name} IS NULL LIMIT 1`,
    );
    return row?.id;
  }

  /** Deletes rows that belong to a deleted row. Returns whether no rows are left. */
  #empty({ holds }: Kind, id: number, end: number): boolean {
    for (const remove of holds) {
      let removed: number;
      do {
        const limit = this.#slice;
        removed = this.#timed(() => remove(id, limit));
        if (removed > 0 && performance.now() >= end) return false;
      } while (removed > 0);
    }
    return true;
  }

  #timed(remove: () => number): number {
    const began = performance.now();
    const removed = remove();
    const tookMs = performance.now() - began;
    if (tookMs > sliceMs) this.#slice = Math.max(1, this.#slice >>> 1);
    else if (tookMs < sliceMs / 2) this.#slice = Math.min(mostRows, this.#slice * 2);
    return removed;
  }
}
