import { Fault, type Clock, type Hash, type InboxSettings, type Store } from "../kernel/index.ts";
import { sha256 } from "./process/sha256.ts";
import { memoryStore } from "./stores/memory/store.ts";
import { systemClock } from "./process/system-sources.ts";

/** `"memory:"` or `"sqlite:PATH"`. */
export type StoreAddress = "memory:" | `sqlite:${string}`;

export interface OpenStoreOptions {
  readonly hash?: Hash;
  readonly clock?: Clock;
  /** E1: the events' chain is keyed with it. The same one is needed by everyone who writes or verifies. */
  readonly auditKey?: string;
  /** What becomes of messages that are handed back. */
  readonly inbox?: Partial<InboxSettings>;
}

/** A store's driver is loaded when it is asked for, not with this package. */
export async function openStore(address: string, options: OpenStoreOptions = {}): Promise<Store> {
  const { hash = sha256, clock = systemClock, auditKey, inbox: mail = {} } = options;
  const [scheme, path] = [address.slice(0, address.indexOf(":")), address.slice(address.indexOf(":") + 1)];
  if (address === "memory:") {
    if (auditKey === undefined) return memoryStore({ hash, inbox: mail });
    throw new Fault("invalid_argument", "a store in memory takes no auditKey: nobody else can write to it");
  }
  if (scheme === "sqlite" && path !== "") {
    const { sqliteStore } = await import("./stores/sqlite/store.ts");
    return sqliteStore({ path, hash, clock, inbox: mail, ...(auditKey === undefined ? {} : { auditKey }) });
  }
  throw new Fault(
    "invalid_argument",
    `${JSON.stringify(address)} is not a store: use "memory:", "sqlite:PATH" or a store`,
  );
}
