import { setImmediate } from "node:timers/promises";
import { CommitRows } from "./commit-rows.ts";
import type { Database } from "./database.ts";
import type { Tables } from "./tables.ts";

/** A slice is made smaller when it took longer than this, and larger when it took less than half. */
const sliceMs = 2;
const mostRows = 4_096;

/** What hangs on a deleted row, and how to delete some of it: by the row's key and how many. */
type Remove = (database: Database, id: number, limit: number) => number;

function rowsOf(table: string, key: string, owner: string): Remove {
  const sql = `DELETE FROM ${table} WHERE (${key}) IN (SELECT ${key} FROM ${table} WHERE ${owner} = ? LIMIT ?)`;
  return (database, id, limit) => database.run(sql, id, limit);
}

interface Kind {
  readonly table: string;
  /** A deleted row has lost it. */
  readonly name: string;
  readonly holds: readonly Remove[];
}

const kinds: readonly Kind[] = [
  {
    table: "runs",
    name: "run_id",
    holds: [
      (database, id, limit) => new CommitRows(database).removeNow(id, limit),
      rowsOf("mail", "id", "run"),
      rowsOf("mail_ids", "run, mail_id", "run"),
      rowsOf("deltas", "id", "run"),
    ],
  },
  { table: "sessions", name: "session_id", holds: [rowsOf("entries", "id", "session")] },
  { table: "blobs", name: "run_id", holds: [rowsOf("blob_pieces", "id", "blob")] },
];

/**
 * Frees what deleted runs, sessions and blobs leave behind, in slices of a few milliseconds between which everyone else gets their
 * turn. A row that lost its name is gone for every reader already; a process that dies here leaves the rest to the next.
 */
export class Collector {
  readonly #tables: Tables;
  #slice = 64;
  #isStopped = false;
  #isAsked = false;
  #working: Promise<void> | undefined;

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  /** Resolves when nothing is left that was deleted before the call. */
  collect(): Promise<void> {
    this.#isAsked = true;
    this.#working ??= this.#work().finally(() => {
      this.#working = undefined;
    });
    return this.#working;
  }

  /** What is left is for the next to open the store. */
  stop(): void {
    this.#isStopped = true;
  }

  async #work(): Promise<void> {
    while (this.#isAsked) {
      this.#isAsked = false;
      for (const kind of kinds) await this.#collectKind(kind);
    }
  }

  async #collectKind(kind: Kind): Promise<void> {
    const { table, name, holds } = kind;
    while (!this.#isStopped) {
      const id = await this.#tables.read(() => this.#next(kind));
      if (id === undefined) return;
      for (const remove of holds) await this.#empty(remove, id);
      if (this.#isStopped) return;
      const sql = `DELETE FROM ${table} WHERE id = ? AND ${name} IS NULL`;
      await this.#delete((database) => database.run(sql, id));
    }
  }

  #next({ table, name }: Kind): number | undefined {
    const row = this.#tables.database.get<{ readonly id: number }>(
      `SELECT id FROM ${table} WHERE ${name} IS NULL LIMIT 1`,
    );
    return row?.id;
  }

  async #empty(remove: Remove, id: number): Promise<void> {
    const removeSome = (database: Database): number => remove(database, id, this.#slice);
    while (!this.#isStopped && (await this.#delete(removeSome)) > 0) await setImmediate();
  }

  #delete(work: (database: Database) => number): Promise<number> {
    return this.#tables.write({
      apply: () => {
        const began = performance.now();
        const changes = work(this.#tables.database);
        const tookMs = performance.now() - began;
        if (tookMs > sliceMs) this.#slice = Math.max(1, this.#slice >>> 1);
        else if (tookMs < sliceMs / 2) this.#slice = Math.min(mostRows, this.#slice * 2);
        return changes;
      },
    });
  }
}
