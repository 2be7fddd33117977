import { setImmediate } from "node:timers/promises";
import { Chore } from "./chore.ts";
import type { CommitRows } from "../rows/commit-rows.ts";
import type { Tables } from "../db/tables.ts";

/** A slice is made smaller when it took longer than this, and larger when it took less than half. */
const sliceMs = 1;
const mostRows = 4_096;
const mostPieces = 4;

/** Deletes some of what hangs on a deleted row, at most so many, and says how many. */
type Remove = (id: number, limit: number) => number;

interface Kind {
  readonly table: string;
  /** A deleted row has lost it. */
  readonly name: string;
  readonly holds: readonly Remove[];
}

/**
 * Frees what deleted runs, sessions and blobs leave behind, in slices of a few milliseconds between which everyone else gets their
 * turn. A row that lost its name is gone for every reader already; a process that dies here leaves the rest to the next.
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
    this.#kinds = [
      {
        table: "runs",
        name: "run_id",
        holds: [
          (id, limit) => rows.removeNow(id, limit),
          rowsOf("mail", "id", "run"),
          rowsOf("mail_ids", "run, mail_id", "run"),
          rowsOf("deltas", "id", "run"),
        ],
      },
      { table: "sessions", name: "session_id", holds: [rowsOf("entries", "id", "session")] },
      {
        table: "blobs",
        name: "run_id",
        // Each is as large as many other rows.
        holds: [(id, limit) => rowsOf("blob_pieces", "id", "blob")(id, Math.min(limit, mostPieces))],
      },
    ];
  }

  /** Resolves when nothing is left that was deleted before the call. */
  collect(): Promise<void> {
    return this.#chore.ask();
  }

  stop(): void {
    this.#chore.stop();
  }

  async #collectKind(kind: Kind): Promise<void> {
    while (!this.#chore.isStopped) {
      // Most who look find nothing: they need not wait for the right to write.
      if ((await this.#tables.read(() => this.#next(kind))) === undefined) return;
      await this.#tables.write({ apply: () => this.#collectSome(kind) });
      await setImmediate();
    }
  }

  /** As many as there is time for, perhaps none to its end. */
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

  /** Whether nothing hangs on it any more. */
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
