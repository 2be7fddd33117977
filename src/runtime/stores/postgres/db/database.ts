import { randomInt } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { escapeIdentifier, Pool, types, type PoolClient, type QueryResult } from "pg";
import { Fault, type StoreChange } from "../../../../kernel/index.ts";
import { isLostConnection, isTransient, isWrongAddress, postgresFault } from "./postgres-fault.ts";
import { Queries } from "./queries.ts";
import { textOf } from "./stored-text.ts";
import { performAlone, Transaction } from "./transaction.ts";

export interface DatabaseOptions {
  /** URL of the database, without parameters of Reeve. */
  readonly url: string;
  readonly schema: string;
  /** Maximum number of connections. */
  readonly connections: number;
  /** Maximum time that a call waits for a connection, and for the answer to one statement. */
  readonly timeoutMs: number;
  /** Called with the changes of each transaction, after its commit. */
  readonly retryForMs: number;
  /** Number of statements or transactions after which a connection is replaced. If absent, it is kept. */
  readonly maxUses?: number | undefined;
  /** Called with what each transaction has changed, after its commit. */
  readonly onChange?: ((change: StoreChange) => void) | undefined;
}

const [bigint, float, numeric, text, texts] = [20, 701, 1700, 25, 1009];

const hints = / (?:INDEXED BY [a-z_]+|NOT INDEXED)/gu;

/**
 * First delay between attempts, in milliseconds. Half of each delay is random, so that workers do not all try at
 * the same time.
 */
const firstDelayMs = 20;
const longestDelayMs = 1_000;

/**
 * A pool of connections to one schema. No statement depends on the state of a connection, so that a transaction
 * pooler can be used between this pool and the server. Faults of the server and of the network are thrown as
 * `Fault`.
 */
export class Database {
  /** Random id that distinguishes this store from others that use the schema. */
  readonly holder = randomInt(2 ** 47);
  /** Names of the workers that this process has registered. */
  readonly workers = new Set<string>();
  /** Host, port and name of the database, without the password. */
  readonly address: string;
  readonly options: DatabaseOptions;
  /**
   * Runs single statements. A statement is repeated after a lost connection. It must therefore be a read, or have
   * the same effect if it runs twice.
   */
  readonly statements: Queries;
  /**
   * Runs single statements like `statements`, but without BEGIN and COMMIT, which take a third of the time. The
   * isolation level is the default of the server, so that a statement must do nothing unless `isReadCommitted` is
   * true.
   */
  readonly guarded: Queries;
  readonly #pool: Pool;
  readonly #schema: string;
  readonly #named = new Map<string, string>();
  #isClosed = false;

  constructor(options: DatabaseOptions) {
    this.options = options;
    this.address = addressOf(options.url);
    this.#schema = escapeIdentifier(options.schema);
    const { connections: max, timeoutMs, maxUses } = options;
    this.#pool = new Pool({
      connectionString: options.url,
      max,
      connectionTimeoutMillis: timeoutMs,
      query_timeout: timeoutMs,
      keepAlive: true,
      allowExitOnIdle: true,
      // Statements are sent without waiting for the answer to the one before, such as BEGIN.
      pipeline: true,
      application_name: applicationName(options.schema),
      types: { getTypeParser: parserOf },
      ...(maxUses !== undefined && { maxUses }),
    });
    // The next statement gets another connection, and its own error if the server is gone.
    this.#pool.on("error", () => undefined);
    // A connection that is lost while it is in use reports that here, too. Without a listener the process would end.
    this.#pool.on("connect", (client) => client.on("error", () => undefined));
    this.statements = new Queries((sql, values) => this.#retried(() => this.#query(sql, values)));
    this.guarded = new Queries((sql, values) =>
      this.#retried(() => this.#pool.query(this.named(sql), [...values])),
    );
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Channel of the notifications about this schema. */
  get channel(): string {
    return `reeve:${this.options.schema}`;
  }

  /** Replaces `{name}` in SQL by the table in the schema of the store, and removes the hints for SQLite. */
  named(sql: string): string {
    let named = this.#named.get(sql);
    if (named === undefined) {
      named = sql.replaceAll(hints, "").replaceAll(/\{([a-z_]+)\}/gu, `${this.#schema}.$1`);
      // Lists have queries that depend on their filters. Their number is bounded by the filters, not by their values.
      this.#named.set(sql, named);
    }
    return named;
  }

  /**
   * Connects once. If no server listens at the address, it rejects at once, because then the URL is most often
   * wrong.
   */
  async reach(): Promise<void> {
    try {
      await this.#query("SELECT 1", []);
    } catch (error) {
      if (isWrongAddress(error)) throw postgresFault(error, this.address);
    }
  }

  /** Runs one statement that may write. It is not repeated: a failure throws the driver's error. */
  once(sql: string, ...values: readonly unknown[]): Promise<QueryResult> {
    return this.#query(sql, values);
  }

  /** Reads with several statements that see one state of the database. The work may be repeated. */
  read<Result>(work: (queries: Queries) => Promise<Result>): Promise<Result> {
    return this.#retried(() =>
      this.#withClient(async (client) => {
        const transaction = new Transaction(this, client, "READ ONLY");
        const result = await transaction.perform(work);
        await transaction.commit();
        return result;
      }),
    );
  }

  /**
   * Runs the work in one transaction. The work is repeated, from the start, if the transaction conflicts with
   * another one or the connection is lost. If the connection is lost during the commit, the database asks the
   * server for the outcome. So if the promise resolves, the work has taken effect once. If it rejects, the work had
   * no effect, unless the server did not say the outcome for `retryForMs`; then `onUnknown` is called with the id
   * of the transaction and the result of the work.
   */
  write<Result>(
    work: (transaction: Transaction) => Promise<Result>,
    onUnknown?: (id: string, result: Result) => void,
  ): Promise<Result> {
    return this.#retried(async () => {
      const { result, transaction, lost } = await this.#withClient((client) => this.#writeOn(client, work));
      if (lost !== undefined) {
        const isCommitted = await this.#isCommitted(transaction.id, lost).catch((error: unknown) => {
          onUnknown?.(transaction.id, result);
          throw error;
        });
        if (!isCommitted) throw lost;
      }
      for (const change of transaction.changes) this.options.onChange?.(change);
      return result;
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#pool.end();
  }

  closed(): Fault {
    return new Fault("closed", `the store at ${this.address} was closed`);
  }

  /** Runs the work. While the server cannot be reached, it pauses and tries again. */
  async #retried<Result>(work: () => Promise<Result>): Promise<Result> {
    const began = performance.now();
    for (let delayMs = firstDelayMs; ; delayMs = Math.min(longestDelayMs, delayMs * 2)) {
      if (this.#isClosed) throw this.closed();
      try {
        return await work();
      } catch (error) {
        if (this.#isClosed && !Fault.is(error)) throw this.closed();
        const isOver = performance.now() - began + delayMs > this.options.retryForMs;
        if (isOver || Fault.is(error) || !isTransient(error)) throw postgresFault(error, this.address);
        await pause(delayMs / 2 + randomInt(delayMs) / 2);
      }
    }
  }

  async #query(sql: string, values: readonly unknown[]): Promise<QueryResult> {
    if (this.#isClosed) throw this.closed();
    return this.#withClient((client) => performAlone(client, this.named(sql), values));
  }

  async #withClient<Result>(work: (client: PoolClient) => Promise<Result>): Promise<Result> {
    const client = await this.#pool.connect();
    let failure: unknown;
    try {
      return await work(client);
    } catch (error) {
      failure = error;
      throw error;
    } finally {
      client.release(isLostConnection(failure));
    }
  }

  async #writeOn<Result>(
    client: PoolClient,
    work: (transaction: Transaction) => Promise<Result>,
  ): Promise<Written<Result>> {
    const transaction = new Transaction(this, client, "READ WRITE");
    const result = await transaction.perform(work);
    try {
      await transaction.commit();
      return { result, transaction };
    } catch (error) {
      if (!isLostConnection(error)) throw error;
      return { result, transaction, lost: error };
    }
  }

  /** Whether a transaction has committed whose commit got no answer. Throws `lost` if the server cannot say. */
  async #isCommitted(id: string, lost: unknown): Promise<boolean> {
    const began = performance.now();
    while (performance.now() - began <= this.options.retryForMs) {
      const row = await this.statements.get<{ readonly status: string | null }>(
        "SELECT pg_xact_status($1::xid8) AS status",
        id,
      );
      if (row?.status === "committed") return true;
      if (row?.status === "aborted") return false;
      // The server has not noticed yet that the connection is lost.
      await pause(firstDelayMs);
    }
    throw postgresFault(lost, this.address);
  }
}

/** A transaction whose work succeeded. */
interface Written<Result> {
  readonly result: Result;
  readonly transaction: Transaction;
  /** The error that ended the connection during the commit. */
  readonly lost?: unknown;
}

/**
 * Returns the parser of a column type. It converts numbers of 64 bits into JavaScript numbers, and stored texts
 * into texts.
 */
const parserOf = ((type: number, format?: "text" | "binary") => {
  if (format === "binary") return types.getTypeParser(type, "binary");
  if (type === bigint || type === float || type === numeric) return Number;
  const parse = types.getTypeParser(type, "text") as (value: string) => unknown;
  if (type === texts) return (value: string) => (parse(value) as readonly string[]).map(textOf);
  return type === text ? textOf : parse;
}) as typeof types.getTypeParser;

/** Returns the name of connections to a schema, by which an upgrade finds them. A name in the URL takes precedence. */
export function applicationName(schema: string): string {
  return `reeve ${schema}`;
}

function addressOf(url: string): string {
  try {
    const { host, pathname } = new URL(url);
    return `${host || "localhost"}${pathname}`;
  } catch {
    throw new Fault(
      "invalid_argument",
      "invalid URL of a PostgreSQL store: expected postgres://USER:PASSWORD@HOST:PORT/DATABASE; percent-encode special characters",
    );
  }
}
