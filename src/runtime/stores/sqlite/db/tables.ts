import { randomInt } from "node:crypto";
import {
  Fault,
  type Clock,
  type Commit,
  type Lease,
  type MaybePromise,
  type RunId,
  type RunRecord,
} from "../../../../kernel/index.ts";
import type { CommitText } from "../../codec/commit-row.ts";
import type { RunKey } from "../../codec/stored-run.ts";
import { SqlTables, type OwnedRun as SqlOwnedRun } from "../../sql/tables.ts";
import type { Request, Value, Work } from "../../sql/work.ts";
import type { Database } from "./database.ts";
import { sqliteDialect, sqliteText } from "./dialect.ts";
import type { GroupCommit, Write } from "./group-commit.ts";

/**
 * The first commit of a run that was created and claimed in one transaction, for its owner to start with. It is the
 * commit itself if no caller can change it, otherwise its text.
 */
interface Beginning {
  readonly run: RunRecord;
  readonly first: Commit | CommitText;
}

/**
 * A run that this store owns, as far as it knows. Only the owner appends commits, through one store at a time (the
 * holder), and every commit is checked by epoch and holder. Therefore the stored position is correct as long as
 * commits succeed.
 */
export interface OwnedRun extends SqlOwnedRun {
  /** The first commit of a new run. It is present until the owner has read it. */
  beginning?: Beginning | undefined;
  /**
   * Version of the database when a commit last passed the check of epoch and holder. While the version is the same,
   * the check need not be repeated.
   */
  takenAt?: number;
}

export interface TablesOptions {
  readonly database: Database;
  readonly writer: GroupCommit;
  readonly clock: Clock;
}

/** The operations of the SQLite store on its tables. */
export class Tables extends SqlTables<OwnedRun> {
  readonly database: Database;
  /** Random id that distinguishes this store from others that have the file open. */
  readonly holder = randomInt(2 ** 47);
  readonly #writer: GroupCommit;
  /** The SQLite texts of shared statements, by their shared form. */
  readonly #texts = new Map<string, string>();
  #isClosed = false;

  constructor({ database, writer, clock }: TablesOptions) {
    super(sqliteDialect, clock);
    this.database = database;
    this.#writer = writer;
  }

  override version(): MaybePromise<string> {
    return this.read(() => `${this.database.version()} ${this.database.writtenRows()}`);
  }

  override query<Result>(work: () => Work<Result>): MaybePromise<Result> {
    return this.read(() => this.now(work()));
  }

  override snapshot<Result>(work: () => Work<Result>): MaybePromise<Result> {
    return this.read(() => this.database.transaction("DEFERRED", () => this.now(work())));
  }

  override transact<Result>(work: () => Work<Result>, bytes = 0): Promise<Result> {
    return this.write({ bytes, apply: () => this.now(work()) });
  }

  /** Does the work synchronously, inside the caller's transaction if there is one. */
  now<Result>(work: Work<Result>): Result {
    let step = work.next();
    while (step.done !== true) step = work.next(this.#answer(step.value));
    return step.value;
  }

  #answer(request: Request): unknown {
    if (request.kind === "lock") return undefined;
    if (request.kind === "tryLock") return true;
    // No listener is called before the transaction ends, because it is synchronous.
    if (request.kind === "announce") return this.announce(request.change);
    const { database } = this;
    const sql = this.#textOf(request.sql);
    const values = request.values.map(boundValue);
    if (request.kind === "get") return database.get(sql, ...values);
    if (request.kind === "all") return database.all(sql, ...values);
    if (request.kind === "run") return database.run(sql, ...values);
    return database.overwriting(() => database.run(sql, ...values));
  }

  #textOf(sql: string): string {
    let text = this.#texts.get(sql);
    if (text === undefined) {
      text = sqliteText(sql);
      this.#texts.set(sql, text);
    }
    return text;
  }

  /** Reads synchronously if no other connection holds a lock. */
  read<Result>(work: () => Result): MaybePromise<Result> {
    if (this.#isClosed) return Promise.reject(this.closed());
    return this.database.patiently(work);
  }

  write<Result>(write: Write<Result>): Promise<Result> {
    if (this.#isClosed) return Promise.reject(this.closed());
    return this.#writer.write(write);
  }

  /** Whether a commit may be written synchronously. If several runs are active, their commits are grouped instead. */
  get writesNow(): boolean {
    return !this.#isClosed && this.owned.size === 1 && this.#writer.isFree();
  }

  /** See `GroupCommit.writeNow`. */
  writeNow<Result extends object>(work: () => Result, bytes: number): Result | undefined {
    return this.#writer.writeNow(work, bytes);
  }

  /** Refuses new calls and waits for queued writes. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#writer.settled();
  }

  /** See `find`. */
  findNow(runId: RunId): RunKey | undefined {
    return this.now(this.find(runId));
  }

  /** See `run`. */
  runNow(runId: RunId): RunKey {
    return this.now(this.run(runId));
  }

  /** See `owner`. */
  ownerOf(lease: Lease): OwnedRun {
    return this.known(lease) ?? this.now(this.ownerNow(lease));
  }

  closed(): Fault {
    return new Fault("closed", `the store at ${this.database.path} was closed`);
  }
}

type SqliteValue = Exclude<Value, readonly unknown[]>;

function boundValue(value: Value): SqliteValue {
  return Array.isArray(value) ? JSON.stringify(value) : (value as SqliteValue);
}
