import type { Clock, Hash, InboxSettings } from "../../../kernel/index.ts";

// A program that imports `reeve/postgres` compiles without the types of the driver: this module and `index.ts` refer to none.

/** Options of `postgresStore`. */
export interface PostgresStoreOptions {
  /**
   * URL of the database: `postgres://USER:PASSWORD@HOST:PORT/DATABASE`. Its parameter `schema` can be used instead
   * of the option of this name.
   */
  readonly url: string;
  /**
   * Hash function for content and the event chain. Every process that opens the schema needs the same function.
   * Default: SHA-256.
   */
  readonly hash?: Hash;
  /** Schema of the tables. It is created if it does not exist. Default: `reeve`. */
  readonly schema?: string;
  /** Maximum number of connections of this store, without the one that listens for notifications. Default: 10. */
  readonly connections?: number;
  /** Maximum time that a call waits for a free connection, and for the answer to one statement. Default: 10_000. */
  readonly timeoutMs?: number;
  /** Maximum time for which a call is tried again while the server cannot be reached. Default: 10_000. */
  readonly retryForMs?: number;
  /**
   * Time after its last sign of life after which a worker of this store counts as dead. A worker sends three signs
   * in this time. Each worker has its own value; other workers use that value to judge it. Default: 15_000.
   */
  readonly leaseMs?: number;
  /** Interval at which readers look for events of runs that other processes execute. Default: 50. */
  readonly watchEveryMs?: number;
  /** Interval at which a worker looks for work that was not announced by a notification. Default: 1_000. */
  readonly pollMs?: number;
  /** How often, and after which delay, messages that are handed back through this store are delivered again. */
  readonly inbox?: Partial<InboxSettings>;
  /**
   * Whether to create the tables if there are none. If `false`, a schema without tables throws `not_found` and does
   * not change. Default: `true`.
   */
  readonly create?: boolean;
  /** Clock for the time at which a run became ready. */
  readonly clock?: Clock;
  /** E1: makes the events' hash chain an HMAC with this key. The same key is needed to verify the chain. */
  readonly auditKey?: string;
}
