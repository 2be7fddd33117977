import type { Clock, Hash, InboxSettings } from "../../../kernel/index.ts";

// A program that imports `reeve/postgres` compiles without the types of the driver: this module and `index.ts` refer to none.

/** Options of `postgresStore`. */
export interface PostgresStoreOptions {
  /** `postgres://USER:PASSWORD@HOST:PORT/DATABASE`. The parameter `schema` is an alternative to the option of this name. */
  readonly url: string;
  /** Hash function for content and the event chain. Every process that opens the schema needs the same. Default: SHA-256. */
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
   * Time after its last sign of life at which a worker of this store counts as dead. A worker sends three signs in this time. Other
   * workers may have other values: each is judged by its own. Default: 15_000.
   */
  readonly leaseMs?: number;
  /** Interval at which readers look for events of runs that other processes execute. Default: 50. */
  readonly watchEveryMs?: number;
  /** Interval at which a worker looks for work of which no notification arrived. Default: 1_000. */
  readonly pollMs?: number;
  /** How often, and after which delay, messages that are handed back through this store are delivered again. */
  readonly inbox?: Partial<InboxSettings>;
  /** If false, a schema without tables is refused with `not_found` and stays as it is. Default: true. */
  readonly create?: boolean;
  /** Source of the time at which a run became ready. */
  readonly clock?: Clock;
  /** E1: makes the events' hash chain an HMAC with this key. The same key is needed to verify the chain. */
  readonly auditKey?: string;
}
