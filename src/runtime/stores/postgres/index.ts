import type { Store } from "../../../kernel/index.ts";
import { explainMissingDriver } from "./missing-driver.ts";
import type { PostgresStoreOptions } from "./store-options.ts";

export type { PostgresStoreOptions } from "./store-options.ts";

/**
 * Opens a store in a PostgreSQL database. Creates its tables if they do not exist. Throws `dependency_missing` if the
 * optional package `pg` is not installed.
 */
export async function postgresStore(options: PostgresStoreOptions): Promise<Store> {
  const store = await import("./store.ts").catch(explainMissingDriver);
  return store.postgresStore(options);
}
