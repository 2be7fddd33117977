import { randomUUID } from "node:crypto";
import { Client } from "pg";
import { inject, onTestFinished } from "vitest";
import type { Store } from "../../src/kernel/index.ts";
import { postgresStore, type PostgresStoreOptions } from "../../src/runtime/stores/postgres/index.ts";

/** Returns the name of a schema that no other test uses. */
export function newSchema(): string {
  return `t_${randomUUID().replaceAll("-", "")}`;
}

/** Opens a store in a schema of the shared server. It is closed after the current test. */
export async function openSchema(
  schema: string,
  options: Partial<PostgresStoreOptions> = {},
): Promise<Store> {
  const store = await postgresStore({
    url: inject("postgresUrl"),
    schema,
    connections: 4,
    watchEveryMs: 10,
    ...options,
  });
  onTestFinished(() => store.close());
  return store;
}

let shared: Promise<Client> | undefined;

/** Sends statements to the shared server, like `psql` does. The calls of a process share a connection. */
export async function query(sql: string): Promise<readonly object[]> {
  const client = await (shared ??= connect());
  const result = (await client.query(sql)) as unknown as { readonly rows?: readonly object[] };
  return result.rows ?? [];
}

/** The connection ends with the process, and does not keep it alive. */
async function connect(): Promise<Client> {
  const client = new Client({ connectionString: inject("postgresUrl") });
  await client.connect();
  (client as Client & { readonly unref: () => void }).unref();
  return client;
}

/** Deletes all rows of a schema. That takes less time than the creation of its tables. */
export async function emptySchema(schema: string): Promise<void> {
  await query(`DO $$ DECLARE name text; BEGIN
    PERFORM set_config('session_replication_role', 'replica', true);
    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = '${schema}' AND tablename <> 'meta' LOOP
      EXECUTE format('DELETE FROM %I.%I', '${schema}', name);
    END LOOP;
  END $$`);
}
