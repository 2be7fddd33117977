import type { DatabaseSync } from "node:sqlite";
import { Fault } from "../../../kernel/index.ts";
import { knownFormats } from "../codec/stored-format.ts";
import { refuseUnknownFile } from "./db/migrate.ts";
import { storeSchema } from "./db/schema.ts";
import { damageOf, headerOf, readFile, requireFile, sizeOf } from "./file-reading.ts";
import { type StoreUser, usersOf, type WorkerFiles, workersOf } from "./file-users.ts";

/** Facts about a SQLite store that are read without a change to it. */
export interface InspectedFile {
  /** Size of the database. */
  readonly bytes: number;
  /** Size of the write-ahead log beside it. */
  readonly logBytes: number;
  /** The stored format, and the one that this version of Reeve writes. An older one has to be upgraded. */
  readonly format: number;
  readonly newest: number;
  /**
   * The damage that the check of SQLite has found. `null` if the file is larger than `maxCheckedBytes` and was not
   * checked.
   */
  readonly damage: readonly string[] | null;
  /** The value of the requested record. `undefined` if it does not exist. */
  readonly record: unknown;
  /** Time at which the newest run was created, in epoch milliseconds. `null` if there are no runs. */
  readonly newestRunAt: number | null;
  /** Number of runs. */
  readonly runs: number;
  /** The other processes that have the store open. `null` if the system does not show this. */
  readonly users: readonly StoreUser[] | null;
  readonly workers: WorkerFiles;
}

export interface InspectFileOptions {
  /** The record whose value is returned. */
  readonly record: { readonly namespace: string; readonly key: string };
  /** Size up to which the whole file is checked. */
  readonly maxCheckedBytes: number;
}

/** Number of problems that the check lists. */
const mostDamage = 5;

/**
 * Reads facts about a SQLite store without changing it. Throws `not_found` if there is no store, and otherwise the
 * same faults as opening it: for a file of another program, an unknown format, or a damaged or locked file.
 */
export async function inspectFile(
  path: string,
  { record: asked, maxCheckedBytes }: InspectFileOptions,
): Promise<InspectedFile> {
  return readFile(path, maxCheckedBytes, (database) => {
    const bytes = requireFile(path);
    const header = headerOf(database, path);
    refuseUnknownFile(header, storeSchema);
    requireTables(database, path);
    const record = database
      .prepare("SELECT body FROM records WHERE namespace = ? AND key = ?")
      .get(asked.namespace, asked.key);
    const runs = database.prepare("SELECT count(*) AS runs, max(created_at) AS newest FROM runs").get();
    return {
      bytes,
      logBytes: sizeOf(`${path}-wal`),
      format: header.format,
      newest: knownFormats(storeSchema).newest,
      damage: bytes > maxCheckedBytes ? null : damageOf(database, mostDamage),
      record: typeof record?.["body"] === "string" ? JSON.parse(record["body"]) : undefined,
      newestRunAt: typeof runs?.["newest"] === "number" ? runs["newest"] : null,
      runs: Number(runs?.["runs"] ?? 0),
      users: usersOf(path),
      workers: workersOf(`${path}-workers`),
    };
  });
}

/**
 * Throws if the names of the tables belong to something else. A file from elsewhere may have views of these names,
 * which compute without an end.
 */
function requireTables(database: DatabaseSync, path: string): void {
  const found = database
    .prepare(
      "SELECT count(*) AS tables FROM sqlite_schema WHERE type = 'table' AND name IN ('runs', 'records')",
    )
    .get();
  if (found?.["tables"] !== 2)
    throw new Fault(
      "store_corrupt",
      `the store at ${path} lacks tables; restore a copy, or choose another file`,
    );
}
