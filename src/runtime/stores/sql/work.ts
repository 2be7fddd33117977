import type { StoreChange } from "../../../kernel/index.ts";

/** A parameter of a statement. For SQLite, a list is passed as JSON. */
export type Value = string | number | null | Uint8Array | readonly string[] | readonly number[];

/** What work asks its database for. */
export type Request =
  | {
      readonly kind: "get" | "all" | "run" | "erase";
      readonly sql: string;
      readonly values: readonly Value[];
    }
  | { readonly kind: "lock"; readonly names: readonly string[] }
  | { readonly kind: "tryLock"; readonly names: readonly string[] }
  | { readonly kind: "announce"; readonly change: StoreChange; readonly everywhere: boolean };

/**
 * Work on the database that both SQL stores share. It yields its requests and gets their answers: for SQLite each
 * answer comes at once, so that a transaction stays synchronous; for PostgreSQL each answer is awaited. An error
 * ends the work, which needs no cleanup.
 *
 * The SQL is PostgreSQL's. `{name}` stands for a table, and `INDEXED BY name` and `NOT INDEXED` are hints for
 * SQLite only. See `sqliteText` for what SQLite replaces.
 */
export type Work<Result> = Generator<Request, Result, unknown>;

/** Returns the first row. */
export function* get<Row extends object = object>(
  sql: string,
  ...values: readonly Value[]
): Work<Row | undefined> {
  return (yield { kind: "get", sql, values }) as Row | undefined;
}

export function* all<Row extends object>(sql: string, ...values: readonly Value[]): Work<readonly Row[]> {
  return (yield { kind: "all", sql, values }) as readonly Row[];
}

/** Runs a statement that writes. Returns the number of rows that were written. */
export function* run(sql: string, ...values: readonly Value[]): Work<number> {
  return (yield { kind: "run", sql, values }) as number;
}

/** Work that needs no request. */
export function* done<Result>(result: Result): Work<Result> {
  yield* [];
  return result;
}

/**
 * Runs a statement that deletes, and overwrites the deleted data as far as the database can. Returns the number of
 * rows.
 */
export function* erase(sql: string, ...values: readonly Value[]): Work<number> {
  return (yield { kind: "erase", sql, values }) as number;
}

/**
 * Locks names until the end of the transaction, so that transactions that lock the same name run one after another.
 * SQLite needs no such locks, because all its transactions run one after another.
 */
export function* lock(...names: readonly string[]): Work<void> {
  if (names.length > 0) yield { kind: "lock", names };
}

/**
 * Locks names like `lock`, but does not wait. Returns `false` if another transaction holds one of the names. In
 * SQLite this does not occur, because a transaction waits for the others before its first statement.
 */
export function* tryLock(...names: readonly string[]): Work<boolean> {
  return names.length === 0 || ((yield { kind: "tryLock", names }) as boolean);
}

/** Announces a change to the listeners of this process and, with `everywhere`, of all processes, after the commit. */
export function* announce(
  change: StoreChange,
  { everywhere = true }: { readonly everywhere?: boolean } = {},
): Work<void> {
  yield { kind: "announce", change, everywhere };
}
