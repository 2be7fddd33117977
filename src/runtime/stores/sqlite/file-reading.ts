import { copyFileSync, existsSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { Fault } from "../../../kernel/index.ts";
import { BusyWait } from "./db/busy-wait.ts";
import type { FileHeader } from "./db/migrate.ts";
import { sqliteFault } from "./db/sqlite-fault.ts";
import { refuseLocked } from "./file-users.ts";

/**
 * Time for which reading a locked file is tried again, in milliseconds. A process that opens or closes a store
 * locks the file for a moment.
 */
export const patienceMs = 500;

/**
 * Reads a SQLite file without changing it: the database and its log stay as they are, and no file is created beside
 * them. Throws `not_found` if there is no file, and otherwise the same faults as opening a store. A file that has a
 * log but no index of the log, such as a copy of a store in use, is copied first, unless it has more than
 * `mostCopied` bytes.
 */
export async function readFile<Result>(
  path: string,
  mostCopied: number,
  read: (database: DatabaseSync) => Result,
): Promise<Result> {
  const wait = new BusyWait();
  for (;;)
    try {
      return readOnce(path, mostCopied, read);
    } catch (error) {
      const isLocked = Fault.is(error) && error.code === "store_unavailable";
      if (!isLocked || wait.elapsedMs > patienceMs) throw error;
      await wait.pause();
    }
}

function readOnce<Result>(
  path: string,
  mostCopied: number,
  read: (database: DatabaseSync) => Result,
): Result {
  const bytes = requireFile(path);
  refuseLocked(path);
  const reading = openReading(path, bytes + sizeOf(`${path}-wal`), mostCopied);
  try {
    return read(reading.database);
  } catch (error) {
    throw sqliteFault(error, path);
  } finally {
    reading.close();
  }
}

/** Reads the header of an open file. Throws if the file is not a database. */
export function headerOf(database: DatabaseSync, path: string): FileHeader {
  // The pragmas alone return 0 for such a file.
  database.prepare("SELECT count(*) FROM sqlite_schema").get();
  const value = (name: string): number => Number(database.prepare(`PRAGMA ${name}`).get()?.[name] ?? 0);
  return { path, owner: value("application_id"), format: value("user_version") };
}

/** Returns the problems that the quick check of SQLite finds, at most `most`. */
export function damageOf(database: DatabaseSync, most: number): readonly string[] {
  const rows = database.prepare(`PRAGMA quick_check(${most})`).all();
  const found = rows.map((row) => String(row["quick_check"]));
  return found.length === 1 && found[0] === "ok" ? [] : found;
}

/** Returns the size of the file. Throws for a device or a pipe, because opening it could block. */
export function requireFile(path: string): number {
  const file = statSync(path, { throwIfNoEntry: false });
  if (file === undefined || (file.isFile() && file.size === 0))
    throw new Fault("not_found", `no store found at ${path}`);
  if (!file.isFile())
    throw new Fault("invalid_argument", `the store cannot be at ${path}: it is no regular file`);
  return file.size;
}

export function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

interface Reading {
  readonly database: DatabaseSync;
  readonly close: () => void;
}

/**
 * Opens the database for reading. SQLite creates files beside such a database even when it only reads. Therefore a
 * database that no process has open is read as an immutable file. If it has a log but no index of the log, as in a
 * copy of a store in use, it is read from a copy, because SQLite ignores the log of an immutable file.
 */
function openReading(path: string, bytes: number, mostCopied: number): Reading {
  if (existsSync(`${path}-shm`) && existsSync(`${path}-wal`)) {
    const database = openFile(path, () => new DatabaseSync(path, { readOnly: true, timeout: 2_000 }));
    return { database, close: () => database.close() };
  }
  if (sizeOf(`${path}-wal`) === 0) {
    const url = pathToFileURL(path);
    url.search = "?mode=ro&immutable=1";
    const database = openFile(path, () => new DatabaseSync(url, { readOnly: true }));
    return { database, close: () => database.close() };
  }
  if (bytes > mostCopied)
    throw new Fault(
      "store_unavailable",
      `the store at ${path} has a log without its index, as a copy of a store in use has, and is too large to be copied for a check; open it once with reeve ps`,
    );
  const folder = mkdtempSync(join(tmpdir(), "reeve-inspect-"));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  try {
    const copy = join(folder, "copy.db");
    copyFileSync(path, copy);
    copyFileSync(`${path}-wal`, `${copy}-wal`);
    const database = openFile(path, () => new DatabaseSync(copy));
    return {
      database,
      close: () => {
        database.close();
        remove();
      },
    };
  } catch (error) {
    remove();
    throw error;
  }
}

function openFile(path: string, open: () => DatabaseSync): DatabaseSync {
  try {
    return open();
  } catch (error) {
    throw sqliteFault(error, path);
  }
}
