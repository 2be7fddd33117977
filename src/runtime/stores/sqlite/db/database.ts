import { statSync, type Stats } from "node:fs";
import { dirname, resolve } from "node:path";
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { Fault, type MaybePromise } from "../../../../kernel/index.ts";
import { BusyWait } from "./busy-wait.ts";
import { readOnlyPlace } from "./read-only-place.ts";
import { isBusy, isPlainError, sqliteFault } from "./sqlite-fault.ts";
import { Statement } from "./statement.ts";

export type Durability = "full" | "normal";

export interface DatabaseOptions {
  readonly path: string;
  readonly durability: Durability;
  /** Maximum time to wait for a lock of another process. */
  readonly busyLimitMs: number;
}

/**
 * Number of WAL pages after which SQLite itself runs a checkpoint, inside a write. `normal`: a high number, because
 * the checkpointer usually does this earlier in a thread. `full`: a low number, because each commit waits for the
 * disk, and a long WAL makes that slower.
 */
const checkpointAfter = { normal: 64_000, full: 1_000 } as const satisfies Record<Durability, number>;
/** Size in bytes to which SQLite truncates the WAL file after a checkpoint. */
const logSizeKept = 33_554_432;
/**
 * Time in milliseconds for which a comparison of the open file with its path is valid. It avoids calls of the file
 * system, which take microseconds.
 */
const comparedForMs = 20;

/** One connection. Every statement is prepared once. All calls are synchronous and never wait for a lock. */
export class Database {
  readonly path: string;
  readonly durability: Durability;
  readonly busyLimitMs: number;
  readonly #connection: DatabaseSync;
  readonly #statements = new Map<string, Statement>();
  /** The files that the connection has open: the database and its WAL. */
  readonly #files: readonly OpenFile[];
  /** Time at which the files were last compared with their paths, by a clock that is never adjusted. */
  #comparedAt = performance.now();
  #lost: Fault | undefined;
  #isOpen = true;

  private constructor(connection: DatabaseSync, { path, durability, busyLimitMs }: DatabaseOptions) {
    this.path = path;
    this.durability = durability;
    this.#connection = connection;
    this.busyLimitMs = busyLimitMs;
    // Absolute, because the process may change its working folder.
    this.#files = [path, `${path}-wal`].map((each) => ({ path: resolve(each), id: undefined }));
  }

  static async open(options: DatabaseOptions): Promise<Database> {
    const { path, durability } = options;
    refuseUnusable(path);
    const database = new Database(openFile(path), options);
    try {
      await database.patiently(() => {
        database.exec("PRAGMA journal_mode = WAL");
        database.exec(`PRAGMA synchronous = ${durability === "full" ? "FULL" : "NORMAL"}`);
        database.exec(`PRAGMA wal_autocheckpoint = ${checkpointAfter[durability]}`);
        database.exec(`PRAGMA journal_size_limit = ${logSizeKept}`);
        // Overwrites copies that remain when content moves within a page: an erasure would not find them there.
        database.exec("PRAGMA secure_delete = FAST");
        // Opens the WAL.
        database.version();
      });
      for (const file of database.#files) file.id = idOf(file.path);
    } catch (error) {
      database.close();
      throw error;
    }
    return database;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Runs statements that are needed only once, without preparing them. */
  exec(sql: string): void {
    this.#connection.exec(sql);
  }

  statement(sql: string): Statement {
    const known = this.#statements.get(sql);
    if (known !== undefined) return known;
    const statement = new Statement(this.#connection, sql);
    this.#statements.set(sql, statement);
    return statement;
  }

  /** Returns the number of changed rows. */
  run(sql: string, ...values: SQLInputValue[]): number {
    return Number(this.statement(sql).run(...values).changes);
  }

  /** Returns the row id of the new row. */
  insert(sql: string, ...values: SQLInputValue[]): number {
    return Number(this.statement(sql).run(...values).lastInsertRowid);
  }

  /** Runs a query and returns its first row. The caller names the columns in the query and in the type. */
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- only the caller knows the columns of its query
  get<Row extends object>(sql: string, ...values: SQLInputValue[]): Row | undefined {
    return this.statement(sql).get(...values) as Row | undefined;
  }

  all<Row extends object>(sql: string, ...values: SQLInputValue[]): Row[] {
    return this.statement(sql).all(...values) as Row[];
  }

  /**
   * Runs a query like `all`, but returns each row as an array of its columns. This takes half the time for many
   * rows. Bench: `runtime`, row "replay".
   */
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- only the caller knows the columns of its query
  lists<Row extends readonly unknown[]>(sql: string, ...values: SQLInputValue[]): Row[] {
    return this.statement(sql).lists(...values) as unknown as Row[];
  }

  /** Returns a number that changes whenever another connection writes to the file. */
  version(): number {
    return this.get<{ readonly data_version: number }>("PRAGMA data_version")?.data_version ?? 0;
  }

  /** Returns the number of rows that this connection has written. */
  writtenRows(): number {
    return this.get<{ readonly rows: number }>("SELECT total_changes() AS rows")?.rows ?? 0;
  }

  /**
   * Throws `store_lost` if the file or its WAL was deleted or replaced: the connection would write to a file that
   * no other process can open. SQLite does not notice that. An earlier comparison is valid for `comparedForMs`,
   * unless the caller requests a new one.
   */
  verify({ isNew = false }: { readonly isNew?: boolean } = {}): void {
    if (this.#lost !== undefined) throw this.#lost;
    const now = performance.now();
    if (!isNew && now - this.#comparedAt < comparedForMs) return;
    const moved = this.#files.find(({ path, id }) => id !== undefined && idOf(path) !== id);
    this.#comparedAt = now;
    if (moved === undefined) return;
    this.#lost = lostFile(this.path, moved.path);
    throw this.#lost;
  }

  /** Runs `work` in a transaction: all of its changes are stored, or none. */
  transaction<Result>(kind: "IMMEDIATE" | "DEFERRED", work: () => Result): Result {
    this.statement(kind === "IMMEDIATE" ? "BEGIN IMMEDIATE" : "BEGIN DEFERRED").run();
    try {
      const result = work();
      this.statement("COMMIT").run();
      return result;
    } catch (error) {
      this.#rollBack();
      throw error;
    }
  }

  /** Runs `work` and overwrites the data that it deletes. By default, SQLite only marks the space as free. */
  overwriting<Result>(work: () => Result): Result {
    this.exec("PRAGMA secure_delete = ON");
    try {
      return work();
    } finally {
      this.exec("PRAGMA secure_delete = FAST");
    }
  }

  /**
   * Does the work. If no other connection holds a lock, it does so synchronously, otherwise when the lock is
   * released. Rejects only with faults: with `store_unavailable` if the file is still locked after `busyLimitMs`,
   * and with the faults of `verify`.
   */
  patiently<Result>(work: () => Result): MaybePromise<Result> {
    try {
      this.verify();
      return work();
    } catch (error) {
      return isBusy(error) ? this.#retry(work) : Promise.reject(sqliteFault(error, this.path));
    }
  }

  async #retry<Result>(work: () => Result): Promise<Result> {
    const wait = new BusyWait();
    for (;;) {
      await wait.pause();
      try {
        // The file may have been deleted while another connection held the lock.
        this.verify();
        return work();
      } catch (error) {
        if (!isBusy(error) || wait.elapsedMs >= this.busyLimitMs) throw sqliteFault(error, this.path);
      }
    }
  }

  #rollBack(): void {
    try {
      this.statement("ROLLBACK").run();
    } catch (error) {
      // After some errors, such as a full disk, SQLite has rolled back already and reports SQLITE_ERROR.
      if (!isPlainError(error)) throw error;
    }
  }

  /** Closes the connection. The last connection that closes runs a checkpoint. */
  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#statements.clear();
    this.#connection.close();
  }
}

interface OpenFile {
  readonly path: string;
  /**
   * Device and inode of the file. While the file is open, no other file has the same. `undefined` before the file
   * is open.
   */
  id: string | undefined;
}

function idOf(path: string): string | undefined {
  const file = statSync(path, { bigint: true, throwIfNoEntry: false });
  return file && `${file.dev} ${file.ino}`;
}

function lostFile(path: string, moved: string): Fault {
  const what = idOf(moved) === undefined ? "deleted or moved away" : "replaced by another file";
  return new Fault(
    "store_lost",
    `the store at ${path} is lost to this process: ${moved} was ${what} while the process had it open, so nothing more would be stored; put the file of the store in its place while no process has it open, then start the process again`,
    { details: { path, file: moved } },
  );
}

function openFile(path: string): DatabaseSync {
  try {
    return new DatabaseSync(path);
  } catch (error) {
    throw sqliteFault(error, path);
  }
}

function refuseUnusable(path: string): void {
  if (path === "" || path === ":memory:") {
    throw new Fault(
      "invalid_argument",
      "a SQLite store needs the path of a file; in memory, use memoryStore",
    );
  }
  const folder = dirname(path);
  if (statAt(folder, path)?.isDirectory() !== true) {
    throw new Fault(
      "not_found",
      `the store cannot be at ${path}: there is no folder ${folder}; create it first`,
    );
  }
  if (statAt(path, path)?.isDirectory() === true) {
    throw new Fault("invalid_argument", `the store cannot be at ${path}: that is a folder; name a file`);
  }
}

/** Returns what exists at a path. `undefined` also if the user may not search its folder. */
function statAt(place: string, path: string): Stats | undefined {
  try {
    return statSync(place, { throwIfNoEntry: false });
  } catch (error) {
    throw readOnlyPlace(path, error) ?? error;
  }
}
