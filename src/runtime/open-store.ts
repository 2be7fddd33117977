import { statSync } from "node:fs";
import {
  inboxSettings,
  Fault,
  type Clock,
  type Hash,
  type InboxSettings,
  type Store,
  is,
  optionTable,
  type OptionKinds,
} from "../kernel/index.ts";
import { sha256 } from "./process/sha256.ts";
import { explainMissingDriver } from "./stores/postgres/missing-driver.ts";
import type { InspectedServer } from "./stores/postgres/inspect-server.ts";
import type { InspectedFile, InspectFileOptions } from "./stores/sqlite/inspect-file.ts";
import { memoryStore } from "./stores/memory/store.ts";
import { systemClock } from "./process/system-sources.ts";

/**
 * Address of a store: `"memory:"`, `"sqlite:PATH"` with the path of a database file, or the URL of a PostgreSQL database,
 * `"postgres://USER:PASSWORD@HOST:PORT/DATABASE?schema=NAME"`.
 */
export type StoreAddress = "memory:" | `sqlite:${string}` | `postgres://${string}` | `postgresql://${string}`;

export interface OpenStoreOptions {
  /** Hash function for content and the event chain. Default: SHA-256. */
  readonly hash?: Hash;
  /** Clock of the store's own maintenance. Default: the machine's clock. */
  readonly clock?: Clock;
  /**
   * E1: secret key of the event chain, which makes the chain an HMAC. Every process that writes to or verifies the
   * store needs the same key. Not for a memory store. If absent, the chain uses plain hashes.
   */
  readonly auditKey?: string;
  /**
   * How often and when an inbox message is delivered again after a run failed to process it. Default: `{ maxDeliveries:
   * 5, baseDelayMs: 1_000, maxDelayMs: 300_000 }`.
   */
  readonly inbox?: Partial<InboxSettings>;
  /**
   * Whether to create the store if it does not exist. If `false`, a missing store throws `not_found`. Default:
   * `true`.
   */
  readonly create?: boolean;
  /**
   * Maximum time in milliseconds until changes of other processes are noticed. With a longer time, an idle process
   * does less work. No effect on a memory store. Default: 25, and 50 for PostgreSQL.
   */
  readonly watchEveryMs?: number;
}

const knownOptions = optionTable({
  hash: is.any,
  clock: is.any,
  auditKey: is.text(),
  inbox: is.checkedBy(inboxSettings),
  create: is.boolean({ default: true }),
  watchEveryMs: is.number({ from: 1 }),
} satisfies OptionKinds<OpenStoreOptions>);

/**
 * Opens the store with this address. The database driver is loaded when the first call needs it, not with the
 * package.
 */
export async function openStore(address: string, options: OpenStoreOptions = {}): Promise<Store> {
  const {
    hash = sha256,
    clock = systemClock,
    auditKey,
    inbox = {},
    create,
    watchEveryMs,
  } = knownOptions.read("openStore()", options);
  const scheme = address.slice(0, address.indexOf(":"));
  if (address === "memory:") {
    if (auditKey === undefined) return memoryStore({ hash, inbox });
    throw new Fault(
      "invalid_argument",
      "a store in memory takes no auditKey, because no other process can write to it: omit auditKey",
    );
  }
  const common = {
    hash,
    clock,
    inbox,
    ...(auditKey === undefined ? {} : { auditKey }),
    ...(watchEveryMs === undefined ? {} : { watchEveryMs }),
  };
  const path = sqlitePath(address);
  if (path !== undefined) {
    if (!create) refuseAbsentFile(path);
    const { sqliteStore } = await import("./stores/sqlite/store.ts");
    return sqliteStore({ path, ...common });
  }
  if (scheme === "postgres" || scheme === "postgresql") {
    const { postgresStore } = await import("./stores/postgres/index.ts");
    return postgresStore({
      url: address,
      create,
      ...common,
    });
  }
  throw new Fault(
    "invalid_argument",
    `invalid store ${JSON.stringify(address)}: expected "memory:", "sqlite:PATH" or "postgres://HOST/DATABASE"`,
  );
}

/** Returns the path of the file in an address of SQLite. `undefined` for an address of another store. */
export function sqlitePath(address: string): string | undefined {
  const path = /^sqlite:(.+)$/su.exec(address)?.[1];
  if (path === undefined) return undefined;
  const invalid = (what: string): Fault =>
    new Fault("invalid_argument", `invalid store ${JSON.stringify(address)}: ${what}`);
  if (/^\/\/[^/]/u.test(path))
    throw invalid(`an address has no // after sqlite:; use ${JSON.stringify(`sqlite:${path.slice(2)}`)}`);
  // A "?" in the name of a folder starts no options.
  const [options] = /\?[^/]*$/u.exec(path) ?? [];
  if (options !== undefined)
    throw invalid(
      `an address of SQLite takes no options after "?"; use ${JSON.stringify(`sqlite:${path.slice(0, -options.length)}`)}, ` +
        'or sqliteStore({ path }) of reeve/sqlite for options and for a file name that contains "?"',
    );
  return path;
}

/** Throws `not_found` if the file contains no store. An empty file counts as no store. */
export function refuseAbsentFile(path: string): void {
  const file = statSync(path, { throwIfNoEntry: false });
  if (file !== undefined && !(file.isFile() && file.size === 0)) return;
  const what = file === undefined ? "no store found at" : "no store found in the file";
  throw new Fault("not_found", `${what} ${path}; check the address of the store`);
}

/** The options of a runtime that choose its store. */
interface StoreChoice extends Pick<OpenStoreOptions, "auditKey" | "inbox"> {
  readonly store?: Store | StoreAddress;
}

/** Opens the store of a runtime, or returns the open store in its options. */
export function storeOf(options: StoreChoice, hash: Hash, clock: Clock): Promise<Store> {
  const { store = "memory:", auditKey, inbox } = options;
  if (typeof store === "string")
    return openStore(store, {
      hash,
      clock,
      ...(auditKey === undefined ? {} : { auditKey }),
      ...(inbox === undefined ? {} : { inbox }),
    });
  const [name] = Object.entries({ auditKey, inbox }).find(([, value]) => value !== undefined) ?? [];
  if (name === undefined) return Promise.resolve(store);
  throw new Fault(
    "invalid_argument",
    `${name} applies only to a store given by its address, and this store is open already: set ${name} where you open it`,
  );
}

/** Facts about a store that can be read without opening it for writing. */
export type InspectedStore =
  | ({ readonly kind: "sqlite"; readonly path: string } & InspectedFile)
  | ({ readonly kind: "postgres" } & InspectedServer);

export interface InspectStoreOptions extends InspectFileOptions {
  /** Maximum time in which a database server must answer, in milliseconds. */
  readonly timeoutMs: number;
}

/**
 * Reads facts about a store without changing it: version, damage, size, locks and clock. If the store cannot be
 * read, throws the same fault as opening it.
 */
export async function inspectStore(address: string, options: InspectStoreOptions): Promise<InspectedStore> {
  const path = sqlitePath(address);
  if (path !== undefined) {
    const { inspectFile } = await import("./stores/sqlite/inspect-file.ts");
    return { kind: "sqlite", path, ...(await inspectFile(path, options)) };
  }
  if (/^postgres(?:ql)?:/u.test(address)) {
    const { inspectServer } = await import("./stores/postgres/inspect-server.ts").catch(explainMissingDriver);
    return { kind: "postgres", ...(await inspectServer(address, options.timeoutMs)) };
  }
  throw new Fault(
    "invalid_argument",
    `invalid store ${JSON.stringify(address)}: expected "sqlite:PATH" or "postgres://HOST/DATABASE"`,
  );
}
