import { Database } from "./db/database.ts";
import { createTables, type TableSet } from "./db/migrate.ts";
import { schemaOf } from "./db/schema-name.ts";

export interface OpenTablesOptions {
  /** URL of the database. Its parameter `schema` names the schema. */
  readonly url: string;
  /** Schema if the URL names none. */
  readonly otherwise: string;
  /** The function whose option the URL is. */
  readonly caller: string;
  readonly tables: TableSet;
}

/** Opens a database for tables that do not belong to the store, and creates them if the schema has none. */
export async function openTables({ url, otherwise, caller, tables }: OpenTablesOptions): Promise<Database> {
  const place = schemaOf({ url, otherwise }, caller);
  const database = new Database({ ...place, connections: 4, timeoutMs: 10_000, retryForMs: 10_000 });
  try {
    await createTables(database, tables);
    return database;
  } catch (error) {
    await database.close();
    throw error;
  }
}
