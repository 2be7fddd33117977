import { chmodSync, closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, statSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { Fault } from "../../../kernel/index.ts";
import { type FormatChange, formatChanges, knownFormats } from "../codec/stored-format.ts";
import { BusyWait } from "./db/busy-wait.ts";
import { type FileSchema, refuseUnknownFile } from "./db/migrate.ts";
import { readOnlyPlace } from "./db/read-only-place.ts";
import { isBusy, isPlainError, sqliteFault } from "./db/sqlite-fault.ts";
import { damageOf, headerOf, patienceMs, readFile, sizeOf } from "./file-reading.ts";
import { type StoreUser, usersOf } from "./file-users.ts";

/** What the upgrade of a file would do. */
export interface FileUpgradePlan {
  readonly path: string;
  readonly format: number;
  /** The format that this version of Reeve writes. */
  readonly newest: number;
  /** The changes from each format to the next. Empty if the file has the newest format. */
  readonly changes: readonly FormatChange[];
  /** Path to which a copy of the file is written first. `null` if nothing changes. */
  readonly backup: string | null;
  /** Size of the file with its log, in bytes. The copy and the log of the upgrade each need up to the same space. */
  readonly bytes: number;
  /** Free space in the folder of the file. */
  readonly freeBytes: number;
  /**
   * The other processes that have the file open, which prevent the upgrade. `null` if the system does not show
   * this.
   */
  readonly users: readonly StoreUser[] | null;
}

/** The stages of an upgrade. If the process dies before `committed`, the file is unchanged. */
export type UpgradeStage = "locked" | "copied" | "changed" | "committed";

/**
 * Returns what an upgrade of the file would do. It changes nothing. The file must have the tables of one of the
 * schemas.
 */
export async function planFileUpgrade(
  path: string,
  schemas: readonly FileSchema[],
): Promise<FileUpgradePlan> {
  const { format, schema } = await readFile(path, Number.MAX_SAFE_INTEGER, (database) =>
    formatOf(database, path, schemas),
  );
  const { bavail, bsize } = await statfs(dirname(resolve(path)));
  const changes = formatChanges(schema, format);
  return {
    path,
    format,
    newest: knownFormats(schema).newest,
    changes,
    backup: changes.length === 0 ? null : backupPath(path, format),
    bytes: sizeOf(path) + sizeOf(`${path}-wal`),
    freeBytes: bavail * bsize,
    users: usersOf(path),
  };
}

/**
 * Upgrades a file to the newest format of its schema. No other process may have it open. First it writes a copy in
 * the same folder, then it changes the file in one transaction. Returns what it has done; the list of changes is
 * empty if the file already had the newest format. If the upgrade fails, the file is unchanged, and the copy is
 * removed.
 */
export async function upgradeFile(
  path: string,
  schemas: readonly FileSchema[],
  onStage: (stage: UpgradeStage) => void = () => undefined,
): Promise<FileUpgradePlan> {
  const plan = await planFileUpgrade(path, schemas);
  if (plan.changes.length === 0) return plan;
  const database = await openAlone(path);
  try {
    const { format, schema } = formatOf(database, path, schemas);
    const changes = formatChanges(schema, format);
    // Another upgrade has done it since.
    if (changes.length === 0) return { ...plan, format, changes, backup: null };
    onStage("locked");
    const backup = backupPath(path, format);
    writeBackup(database, { path, backup, format });
    onStage("copied");
    try {
      changeTables(database, { path, schema, format, onStage });
    } catch (error) {
      rmSync(backup);
      throw error;
    }
    onStage("committed");
    return { ...plan, format, changes, backup };
  } catch (error) {
    throw sqliteFault(error, path);
  } finally {
    database.close();
  }
}

interface FoundSchema {
  readonly format: number;
  readonly schema: FileSchema;
}

/**
 * Returns the format of a file, and the schema to which it belongs. Throws if it belongs to none of the schemas, or
 * has an unknown format.
 */
function formatOf(database: DatabaseSync, path: string, schemas: readonly FileSchema[]): FoundSchema {
  const header = headerOf(database, path);
  const schema = schemas.find(({ applicationId }) => applicationId === header.owner);
  if (schema === undefined)
    throw new Fault("invalid_argument", `${path} is the database of another program; choose another file`);
  refuseUnknownFile(header, schema);
  return { format: header.format, schema };
}

/** Opens a file that no other process has open, and prevents other processes from opening it until it is closed. */
async function openAlone(path: string): Promise<DatabaseSync> {
  const wait = new BusyWait();
  for (;;) {
    const database = new DatabaseSync(path);
    try {
      // A connection that is exclusive before it reads shares no index of the log: it needs a lock that every other one prevents.
      database.exec("PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = FULL; PRAGMA secure_delete = ON");
      database.exec("BEGIN EXCLUSIVE; COMMIT");
      return database;
    } catch (error) {
      database.close();
      if (!isBusy(error)) throw sqliteFault(error, path);
      if (wait.elapsedMs > patienceMs) throw inUse(path, error);
      await wait.pause();
    }
  }
}

function inUse(path: string, cause: unknown): Fault {
  const pids = usersOf(path)?.map(({ pid }) => pid) ?? [];
  const names = pids.length === 0 ? "another process" : `process ${pids.join(", process ")}`;
  return new Fault(
    "store_unavailable",
    `the store at ${path} is in use by ${names}; end every process that uses it, then upgrade it again`,
    { cause, details: { path, pids } },
  );
}

/** Returns the path of the copy. If an earlier upgrade ended before its commit and left a copy, that copy is kept. */
function backupPath(path: string, format: number): string {
  const first = `${path}.format-${format}.backup`;
  let backup = first;
  for (let number = 2; existsSync(backup); number++) backup = `${first}-${number}`;
  return backup;
}

interface Backup {
  readonly path: string;
  readonly backup: string;
  readonly format: number;
}

/** Writes a copy and checks it. Only a complete copy gets the final name. */
function writeBackup(database: DatabaseSync, { path, backup, format }: Backup): void {
  const partial = `${path}.format-${format}.partial`;
  // This process alone upgrades the file, so that a dead one has left it.
  rmSync(partial, { force: true });
  try {
    // SQLite fills an empty file. The copy must not be readable for more users than the file.
    createEmpty(partial, statSync(path).mode);
    database.prepare("VACUUM INTO ?").run(partial);
    checkBackup(partial, format);
    sync(partial);
    renameSync(partial, backup);
    sync(dirname(resolve(backup)));
  } catch (error) {
    rmSync(partial, { force: true });
    throw error;
  }
}

function createEmpty(file: string, mode: number): void {
  try {
    closeSync(openSync(file, "wx", 0o600));
    chmodSync(file, mode & 0o777);
  } catch (error) {
    throw readOnlyPlace(file, error) ?? error;
  }
}

function checkBackup(file: string, format: number): void {
  const url = pathToFileURL(file);
  url.search = "?mode=ro&immutable=1";
  const copy = new DatabaseSync(url, { readOnly: true });
  try {
    const [damage] = damageOf(copy, 1);
    if (damage !== undefined || headerOf(copy, file).format !== format)
      throw new Fault(
        "store_corrupt",
        `the copy ${file} of the store is not as the store: ${damage ?? "it has another format"}; check the disk with reeve doctor --full`,
      );
  } finally {
    copy.close();
  }
}

/** Makes the system write a file, or the names in a folder, to the disk. */
function sync(path: string): void {
  const opened = openSync(path, "r");
  try {
    fsyncSync(opened);
  } finally {
    closeSync(opened);
  }
}

interface Change {
  readonly path: string;
  readonly schema: FileSchema;
  readonly format: number;
  readonly onStage: (stage: UpgradeStage) => void;
}

function changeTables(database: DatabaseSync, { path, schema, format, onStage }: Change): void {
  const { oldest, migrations } = schema;
  database.exec("BEGIN IMMEDIATE");
  try {
    for (const { script } of migrations.slice(format - oldest)) database.exec(script);
    database.exec(`PRAGMA user_version = ${knownFormats(schema).newest}`);
    const [damage] = damageOf(database, 1);
    if (damage !== undefined)
      throw new Fault(
        "store_corrupt",
        `the upgrade of the store at ${path} was taken back, because SQLite finds damage after it: ${damage}; check the store with reeve doctor --full`,
      );
    onStage("changed");
    database.exec("COMMIT");
  } catch (error) {
    rollBack(database);
    throw error;
  }
}

function rollBack(database: DatabaseSync): void {
  try {
    database.exec("ROLLBACK");
  } catch (error) {
    // After some errors, such as a full disk, SQLite has rolled back already and reports SQLITE_ERROR.
    if (!isPlainError(error)) throw error;
  }
}
