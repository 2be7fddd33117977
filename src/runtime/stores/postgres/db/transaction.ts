import type { PoolClient, QueryResult } from "pg";
import { Fault, type StoreChange } from "../../../../kernel/index.ts";
import type { Request } from "../../sql/work.ts";
import { Queries } from "./queries.ts";

/** The parts of a database that its transactions use. */
interface Names {
  readonly holder: number;
  readonly workers: ReadonlySet<string>;
  readonly channel: string;
  named(sql: string): string;
}

/**
 * Begins a transaction with its isolation level, so that a default of the server, the database or the role does not
 * change what the statements see.
 */
const begin = "BEGIN ISOLATION LEVEL READ COMMITTED";
/**
 * SQL condition that the transaction of a statement has the level READ COMMITTED. For a statement that is sent
 * without BEGIN.
 */
export const isReadCommitted = "current_setting('transaction_isolation') = 'read committed'";
/**
 * Begins a transaction that writes. Its settings end the transaction if its process was stopped, so that its locks
 * do not block other workers. `SET LOCAL` ends with the transaction. With the id, a process that lost its
 * connection can ask whether the transaction has committed.
 */
const beginWrite = `${begin}; SET LOCAL lock_timeout = '5s'; SET LOCAL idle_in_transaction_session_timeout = '5s';
  SELECT pg_current_xact_id()::text AS id`;
const beginRead = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
const notify = "SELECT pg_notify($1, payload) FROM unnest($2::text[]) AS payload";

const uniqueNames = "(SELECT DISTINCT name FROM unnest($2::text[]) AS name ORDER BY name) AS names";
const lockNames = `SELECT pg_advisory_xact_lock(hashtextextended($1 || name, 0)) FROM ${uniqueNames}`;
const tryLockNames = `SELECT bool_and(pg_try_advisory_xact_lock(hashtextextended($1 || name, 0))) AS "isHeld" FROM ${uniqueNames}`;

/** A notification: the store that sends it, the change, and whether its process has a registered worker. */
export type Notice = readonly [holder: number, change: StoreChange, hasWorker?: boolean];

/** Maximum length of a notification. PostgreSQL refuses notifications of 8,000 bytes or more. */
const mostPayload = 2_000;

/**
 * Runs one statement in its own transaction. The three messages are sent at once, so that this costs one round
 * trip. A setting of the connection would be faster, but a transaction pooler does not keep settings.
 */
export async function performAlone(
  client: PoolClient,
  sql: string,
  values: readonly unknown[],
): Promise<QueryResult> {
  const sent = [client.query(begin), client.query(sql, [...values]), client.query("END")] as const;
  // The connection is free when all three are answered.
  await Promise.allSettled(sent);
  const [, answer] = await Promise.all(sent);
  return answer;
}

/** The work on one connection between BEGIN and COMMIT. */
export class Transaction extends Queries {
  readonly #client: PoolClient;
  readonly #names: Names;
  readonly #begun: Promise<QueryResult | readonly QueryResult[]>;
  readonly #changes: StoreChange[] = [];
  readonly #notified: string[] = [];
  #id = "";

  constructor(names: Names, client: PoolClient, kind: "READ ONLY" | "READ WRITE") {
    super((sql, values) => client.query(names.named(sql), [...values]));
    this.#client = client;
    this.#names = names;
    this.#begun = client.query(kind === "READ ONLY" ? beginRead : beginWrite);
    // The next statement fails as well, and its error is thrown.
    this.#begun.catch(() => undefined);
  }

  /** The server's id of the transaction. Known after `perform`. */
  get id(): string {
    return this.#id;
  }

  get changes(): readonly StoreChange[] {
    return this.#changes;
  }

  /** Announces a change to the listeners of this process and, with `everywhere`, of all processes, after the commit. */
  announce(change: StoreChange, { everywhere = true }: { readonly everywhere?: boolean } = {}): void {
    this.#changes.push(change);
    if (!everywhere) return;
    const { holder, workers } = this.#names;
    const payload = JSON.stringify([holder, change, workers.size > 0] satisfies Notice);
    this.#notified.push(
      payload.length <= mostPayload ? payload : JSON.stringify([holder, { kind: "other" }]),
    );
  }

  /** Locks names until the end of the transaction, so that transactions that lock the same name run one after another. */
  async lock(...names: readonly string[]): Promise<void> {
    await this.all(lockNames, `${this.#names.channel} `, names);
  }

  /** Locks names like `lock`, but does not wait. Returns `false` if another transaction holds one of the names. */
  async tryLock(...names: readonly string[]): Promise<boolean> {
    const answer = await this.get<{ readonly isHeld: boolean }>(
      tryLockNames,
      `${this.#names.channel} `,
      names,
    );
    return answer?.isHeld === true;
  }

  protected override async answer(request: Request): Promise<unknown> {
    if (request.kind === "lock") return this.lock(...request.names);
    if (request.kind === "tryLock") return this.tryLock(...request.names);
    if (request.kind !== "announce") return super.answer(request);
    this.announce(request.change, request);
    return undefined;
  }

  /** Runs several statements without parameters. */
  async script(sql: string): Promise<void> {
    await this.#client.query(this.#names.named(sql));
  }

  /** Runs the work and commits it. If it fails, rolls it back. */
  async perform<Result>(work: (transaction: this) => Promise<Result>): Promise<Result> {
    try {
      const result = await work(this);
      const begun = await this.#begun;
      const last = Array.isArray(begun) ? (begun as readonly QueryResult[]).at(-1) : undefined;
      this.#id = (last?.rows[0] as { readonly id: string } | undefined)?.id ?? "";
      return result;
    } catch (error) {
      // If the connection is lost, the server rolls back.
      await this.#client.query("ROLLBACK").catch(() => undefined);
      throw error;
    }
  }

  async commit(): Promise<void> {
    const told =
      this.#notified.length === 0 ? undefined : this.run(notify, this.#names.channel, this.#notified);
    told?.catch(() => undefined);
    const done = await this.#client.query("COMMIT");
    await told;
    // COMMIT rolls back a transaction in which a statement failed.
    if (done.command !== "COMMIT") throw new Fault("internal", "a transaction was rolled back by its commit");
  }
}
