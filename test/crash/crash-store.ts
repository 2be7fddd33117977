import { createHash } from "node:crypto";
import type { Store } from "../../src/kernel/index.ts";
import { sha256 } from "../../src/runtime/index.ts";
import { sqliteStore } from "../../src/runtime/stores/sqlite/store.ts";

/** Environment variable with the URL of a PostgreSQL server. If it is set, workers use a schema there instead of a file. */
export const crashServer = "REEVE_CRASH_POSTGRES";

/** Environment variable with a `SiteAddress` as JSON. If it is set, workers use the Restate engine. */
export const crashSite = "REEVE_CRASH_RESTATE";

/**
 * Environment variable with the milliseconds after which a worker on the PostgreSQL server counts as dead. Default:
 * 1,000.
 */
export const crashLease = "REEVE_CRASH_LEASE_MS";

/**
 * Opens the store that worker processes share: the SQLite file, or a schema of a PostgreSQL server that is named after
 * the file. On PostgreSQL a worker counts as dead after a second, so that the next worker does not wait long.
 */
export async function openCrashStore(file: string): Promise<Store> {
  const url = process.env[crashServer];
  if (url === undefined) return sqliteStore({ path: file, hash: sha256, watchEveryMs: 5 });
  const { postgresStore } = await import("../../src/runtime/stores/postgres/store.ts");
  return postgresStore({
    url,
    schema: crashSchema(file),
    hash: sha256,
    connections: 4,
    leaseMs: Number(process.env[crashLease] ?? 1_000),
    watchEveryMs: 50,
    pollMs: 50,
  });
}

/** The schema of a PostgreSQL server that stands for a SQLite file. */
export function crashSchema(file: string): string {
  return `t_${createHash("sha256").update(file).digest("hex").slice(0, 32)}`;
}
