import { copyFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { Fault } from "../../../kernel/index.ts";
import { BusyWait } from "./db/busy-wait.ts";
import { storeSchema } from "./db/migrations.ts";
import { sqliteFault } from "./db/sqlite-fault.ts";

/** A process that has a store open. */
interface StoreUser {
  readonly pid: number;
  /** Whether it was writing at that moment. */
  readonly isWriting: boolean;
}

/** What a SQLite store contains, read without changing it. */
export interface InspectedFile {
  /** Size of the database. */
  readonly bytes: number;
  /** Size of the write-ahead log beside it. */
  readonly logBytes: number;
  /** Version of the tables, and those that this version of Reeve opens. An older one is migrated by the next command that writes. */
  readonly version: number;
  readonly supported: { readonly oldest: number; readonly newest: number };
  /** What the check of SQLite has found. `null` if the file is larger than `maxCheckedBytes`. */
  readonly damage: readonly string[] | null;
  /** The value of the record that was asked for. `undefined` if there is none. */
  readonly record: unknown;
  /** When the newest run was created, in epoch milliseconds. `null` if there is none. */
  readonly newestRunAt: number | null;
  /** Number of runs. */
  readonly runs: number;
  /** The other processes that have the store open. `null` if the system does not tell. */
  readonly users: readonly StoreUser[] | null;
  /** Number of lock files of workers, and how many of them a live process holds. `null` if the system does not tell. */
  readonly workers: { readonly files: number; readonly live: number | null };
}

export interface InspectFileOptions {
  /** The record whose value is returned. */
  readonly record: { readonly namespace: string; readonly key: string };
  /** Size up to which the whole file is checked. */
  readonly maxCheckedBytes: number;
}

/** How long a locked file is tried again: a process that opens or closes a store locks the file for an instant. */
const patienceMs = 500;
/** Number of problems that the check lists. */
const mostDamage = 5;

/**
 * Reads a SQLite store without changing it: the database and its log stay as they are, and no file is created beside them.
 * Throws `not_found` if there is no store, and the faults of an opening: another program's file, a version that is not
 * supported, a damaged or a locked file.
 */
export async function inspectFile(path: string, options: InspectFileOptions): Promise<InspectedFile> {
  const wait = new BusyWait();
  for (;;)
    try {
      return readStore(path, options);
    } catch (error) {
      const isLocked = Fault.is(error) && error.code === "store_unavailable";
      if (!isLocked || wait.elapsedMs > patienceMs) throw error;
      await wait.pause();
    }
}

function readStore(path: string, options: InspectFileOptions): InspectedFile {
  const bytes = requireFile(path);
  refuseLocked(path);
  const logBytes = sizeOf(`${path}-wal`);
  const reading = openReading(path, bytes + logBytes, options.maxCheckedBytes);
  try {
    const { database } = reading;
    const version = versionOf(database, path);
    requireTables(database, path);
    const record = database
      .prepare("SELECT body FROM records WHERE namespace = ? AND key = ?")
      .get(options.record.namespace, options.record.key);
    const runs = database.prepare("SELECT count(*) AS runs, max(created_at) AS newest FROM runs").get();
    return {
      bytes,
      logBytes,
      version,
      supported: supportedVersions(),
      damage: bytes > options.maxCheckedBytes ? null : damageOf(database),
      record: typeof record?.["body"] === "string" ? JSON.parse(record["body"]) : undefined,
      newestRunAt: typeof runs?.["newest"] === "number" ? runs["newest"] : null,
      runs: Number(runs?.["runs"] ?? 0),
      users: usersOf(path),
      workers: workersOf(`${path}-workers`),
    };
  } catch (error) {
    throw sqliteFault(error, path);
  } finally {
    reading.close();
  }
}

/** Returns the size of the file. Opening a device or a pipe could block. */
function requireFile(path: string): number {
  const file = statSync(path, { throwIfNoEntry: false });
  if (file === undefined || (file.isFile() && file.size === 0))
    throw new Fault("not_found", `no store found at ${path}`);
  if (!file.isFile())
    throw new Fault("invalid_argument", `the store cannot be at ${path}: it is no regular file`);
  return file.size;
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

interface Reading {
  readonly database: DatabaseSync;
  readonly close: () => void;
}

/**
 * Opens the database for reading. SQLite creates files beside a database of this kind even when it only reads, so a database
 * that no process has open is read as an immutable file. With a log but without its index, as in a copy of a store in use,
 * it is read from a copy, because an immutable file is read without its log.
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

function supportedVersions(): InspectedFile["supported"] {
  const { oldest = 1, migrations } = storeSchema;
  return { oldest, newest: oldest + migrations.length };
}

/** The version of the tables. Throws if the file is not a store that this version of Reeve opens. */
function versionOf(database: DatabaseSync, path: string): number {
  const value = (name: string): number => Number(database.prepare(`PRAGMA ${name}`).get()?.[name] ?? 0);
  if (value("application_id") !== storeSchema.applicationId)
    throw new Fault("invalid_argument", `${path} is the database of another program; choose another file`);
  const version = value("user_version");
  const { oldest, newest } = supportedVersions();
  if (version >= oldest && version <= newest) return version;
  const problem =
    version > newest
      ? `was written by a newer version of Reeve: its tables have version ${version}, this version supports ${newest}; update reeve`
      : `was written by a development version of Reeve: its tables have version ${version}, the first supported version is ${oldest}; move it away`;
  throw new Fault("version_mismatch", `${path} ${problem}`);
}

/** A file of others may have views of these names, which compute without an end. */
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

function damageOf(database: DatabaseSync): readonly string[] {
  const rows = database.prepare(`PRAGMA quick_check(${mostDamage})`).all();
  const found = rows.map((row) => String(row["quick_check"]));
  return found.length === 1 && found[0] === "ok" ? [] : found;
}

/** A lock of a process on a file, as Linux lists it. */
interface SystemLock {
  readonly isWrite: boolean;
  readonly pid: number;
  readonly inode: bigint;
  readonly from: number;
}

/** The locks of all processes. `null` if the system does not list them. */
function systemLocks(): readonly SystemLock[] | null {
  let text: string;
  try {
    text = readFileSync("/proc/locks", "utf8");
  } catch {
    // Other systems have no such list.
    return null;
  }
  return text.split("\n").flatMap((line) => {
    const [, mode, pid, inode, from] =
      /(READ|WRITE)\s+(-?\d+) [\da-f]+:[\da-f]+:(\d+) (\d+)/u.exec(line) ?? [];
    if (inode === undefined) return [];
    return [{ isWrite: mode === "WRITE", pid: Number(pid), inode: BigInt(inode), from: Number(from) }];
  });
}

/** The place of the lock in the index of the log that a connection holds while it writes. */
const writeLock = 120;

function usersOf(path: string): readonly StoreUser[] | null {
  const locks = systemLocks();
  if (locks === null) return null;
  const [file, index] = [inodeOf(path), inodeOf(`${path}-shm`)];
  const users = new Map<number, boolean>();
  for (const { pid, inode, isWrite, from } of locks)
    if ((inode === file || inode === index) && pid !== process.pid)
      users.set(pid, users.get(pid) === true || (inode === index && isWrite && from === writeLock));
  return [...users].map(([pid, isWriting]) => ({ pid, isWriting }));
}

/** Refuses a file that a process has locked for itself. It has no index then, and may change while it is read. */
function refuseLocked(path: string): void {
  const file = inodeOf(path);
  const lock = systemLocks()?.find(({ inode, isWrite }) => isWrite && inode === file);
  if (lock !== undefined)
    throw new Fault("store_unavailable", `the store at ${path} is locked by process ${lock.pid}`);
}

function inodeOf(path: string): bigint | undefined {
  return statSync(path, { bigint: true, throwIfNoEntry: false })?.ino;
}

function workersOf(folder: string): InspectedFile["workers"] {
  if (!existsSync(folder)) return { files: 0, live: 0 };
  const files = readdirSync(folder).map((name) => join(folder, name));
  const locks = systemLocks();
  const held = new Set(locks?.filter(({ isWrite }) => isWrite).map(({ inode }) => inode));
  const isHeld = (file: string): boolean => {
    const inode = inodeOf(file);
    return inode !== undefined && held.has(inode);
  };
  return { files: files.length, live: locks === null ? null : files.filter(isHeld).length };
}
