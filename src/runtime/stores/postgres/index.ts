import { Fault, type Store } from "../../../kernel/index.ts";
import type { PostgresStoreOptions } from "./store.ts";

export type { PostgresStoreOptions } from "./store.ts";

/**
 * Opens a store in a PostgreSQL database. Creates its tables if they do not exist. Throws `dependency_missing` if the
 * optional package `pg` is not installed.
 */
export async function postgresStore(options: PostgresStoreOptions): Promise<Store> {
  const store = await import("./store.ts").catch(explainMissingDriver);
  return store.postgresStore(options);
}

function explainMissingDriver(error: unknown): never {
  if (!(error instanceof Error) || !("code" in error) || error.code !== "ERR_MODULE_NOT_FOUND") throw error;
  throw new Fault("dependency_missing", "a PostgreSQL store needs the package pg: npm install pg", {
    cause: error,
  });
}
