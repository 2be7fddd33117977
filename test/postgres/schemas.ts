import { randomUUID } from "node:crypto";
import { Client } from "pg";
import { inject, onTestFinished } from "vitest";
import type { Store } from "../../src/kernel/index.ts";
import { sha256 } from "../../src/runtime/process/sha256.ts";
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
    hash: sha256,
    connections: 4,
    watchEveryMs: 10,
    ...options,
  });
  onTestFinished(() => store.close());
  return store;
}

/** Sends statements to the shared server, like `psql` does. */
export async function query(sql: string, url = inject("postgresUrl")): Promise<readonly object[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    const result = (await client.query(sql)) as unknown as { readonly rows?: readonly object[] };
    return result.rows ?? [];
  } finally {
    await client.end();
  }
}

/** Deletes all rows of a schema. That takes less time than the creation of its tables. */
export async function emptySchema(schema: string): Promise<void> {
  const tables = await query(
    `SELECT tablename AS name FROM pg_tables WHERE schemaname = '${schema}' AND tablename <> 'meta'`,
  );
  const names = (tables as readonly { readonly name: string }[]).map(({ name }) => name);
  await query(
    `BEGIN; SET LOCAL session_replication_role = replica; ${names.map((name) => `DELETE FROM ${schema}.${name};`).join(" ")} COMMIT`,
  );
}
