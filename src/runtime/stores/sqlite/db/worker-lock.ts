import { existsSync, mkdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Fault } from "../../../../kernel/index.ts";
import { sha256Hex } from "../../../process/sha256.ts";
import { BusyWait } from "./busy-wait.ts";
import { readOnlyPlace } from "./read-only-place.ts";
import { isBusy, sqliteFault } from "./sqlite-fault.ts";

/**
 * Time for which `take` retries, in milliseconds. A process that checks whether a worker is alive holds the lock
 * for a moment, which looks like a live worker.
 */
const patienceMs = 500;

/**
 * Finds out which workers are alive. Each worker holds a lock on its own file beside the database. The operating
 * system releases the lock when the process dies, and keeps it while the process is stopped or the machine sleeps.
 * The lock is an open exclusive SQLite transaction on an empty file, because Node has no file locks.
 *
 * - K1 Only the holder of the lock removes the file, so that an existing file is the current one. If a person
 *   deletes the file, its holder finds this out with `keep` and creates it again.
 * - K2 Only SQLite opens these files: closing another descriptor of the file would release the process's POSIX
 *   locks on it.
 */
export class WorkerLocks {
  readonly #folder: string;
  readonly #held = new Map<string, HeldLock>();
  /** Open connections to the lock files of other workers that were alive at the last check. */
  readonly #probes = new Map<string, DatabaseSync>();

  constructor(path: string) {
    this.#folder = `${path}-workers`;
  }

  /**
   * Takes the lock of a worker. Returns `false` if this process already holds it. Throws `already_exists` if
   * another live worker has this name.
   */
  async take(workerId: string): Promise<boolean> {
    if (this.#held.has(workerId)) return false;
    this.#makeFolder();
    const wait = new BusyWait();
    const file = this.#file(workerId);
    for (;;) {
      const lock = openLock(file);
      const found = tryLock(lock, file);
      if (found === "taken" && this.#isOnFile(workerId)) {
        this.#held.set(workerId, { lock, inode: inodeOf(file) });
        return true;
      }
      lock.close();
      if (wait.elapsedMs > patienceMs) throw refusal(workerId, found);
      await wait.pause();
      if (this.#held.has(workerId)) return false;
    }
  }

  /**
   * K1: takes the lock again if its file was deleted, and then throws `store_unavailable`, because other workers
   * may have taken over runs in the meantime. Throws `already_exists` if another worker of this name has created
   * the file.
   */
  keep(workerId: string): void {
    const held = this.#held.get(workerId);
    const file = this.#file(workerId);
    if (held === undefined || held.inode === inodeOf(file)) return;
    this.#makeFolder();
    const lock = openLock(file);
    const found = tryLock(lock, file);
    if (found !== "taken") {
      lock.close();
      throw refusal(workerId, found);
    }
    held.lock.close();
    this.#held.set(workerId, { lock, inode: inodeOf(file) });
    throw new Fault(
      "store_unavailable",
      `the lock file ${file} of worker ${workerId} was deleted and is created again; other workers may have taken over its runs meanwhile; keep the files in ${this.#folder} while a worker runs`,
      { details: { workerId, file } },
    );
  }

  /** Whether this process has the lock of the worker, on the file that other processes see. */
  holds(workerId: string): boolean {
    const held = this.#held.get(workerId);
    return held !== undefined && held.inode === inodeOf(this.#file(workerId));
  }

  drop(workerId: string): void {
    const held = this.#held.get(workerId);
    if (held === undefined) return;
    this.#held.delete(workerId);
    const file = this.#file(workerId);
    // A file that was deleted and created again belongs to another worker.
    if (held.inode === inodeOf(file)) removeFile(file);
    held.lock.close();
  }

  isGone(workerId: string): boolean {
    if (this.#held.has(workerId)) return false;
    const file = this.#file(workerId);
    const probe = this.#probes.get(workerId);
    if (probe !== undefined && tryLock(probe, file) === "busy") return false;
    // The file may have been removed and created again meanwhile. Only the current file counts (K1).
    this.#probes.delete(workerId);
    probe?.close();
    if (!existsSync(file)) return true;
    const lock = openLock(file);
    const found = tryLock(lock, file);
    if (found === "busy") {
      this.#probes.set(workerId, lock);
      return false;
    }
    if (found === "taken") removeFile(file);
    lock.close();
    if (found instanceof Fault) throw found;
    return true;
  }

  /** Closes the probes of all other workers. */
  forgetAllBut(workerIds: ReadonlySet<string>): void {
    for (const [workerId, probe] of this.#probes) {
      if (workerIds.has(workerId)) continue;
      this.#probes.delete(workerId);
      probe.close();
    }
  }

  close(): void {
    for (const workerId of this.#held.keys()) this.drop(workerId);
    this.forgetAllBut(new Set());
  }

  /** K1: whether the lock is on the current file, and not on a file that was removed before the lock was taken. */
  #isOnFile(workerId: string): boolean {
    const file = this.#file(workerId);
    if (!existsSync(file)) return false;
    const second = openLock(file);
    const found = tryLock(second, file);
    second.close();
    return found === "busy";
  }

  #makeFolder(): void {
    try {
      mkdirSync(this.#folder, { recursive: true });
    } catch (error) {
      throw readOnlyPlace(this.#folder, error) ?? error;
    }
  }

  #file(workerId: string): string {
    return join(this.#folder, sha256Hex(workerId).slice(0, 32));
  }
}

interface HeldLock {
  readonly lock: DatabaseSync;
  /** Identifies the file on which the lock is. */
  readonly inode: bigint | undefined;
}

/** K2: reads the identity of the file without opening it. `undefined` if the file does not exist. */
function inodeOf(file: string): bigint | undefined {
  return statSync(file, { bigint: true, throwIfNoEntry: false })?.ino;
}

function openLock(file: string): DatabaseSync {
  try {
    return new DatabaseSync(file);
  } catch (error) {
    throw sqliteFault(error, file);
  }
}

function tryLock(lock: DatabaseSync, file: string): "taken" | "busy" | Fault {
  try {
    // Nothing is ever written, so no journal file is needed beside the file.
    lock.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
    return "taken";
  } catch (error) {
    return isBusy(error) ? "busy" : sqliteFault(error, file);
  }
}

function refusal(workerId: string, found: "taken" | "busy" | Fault): Fault {
  if (found instanceof Fault) return found;
  return new Fault(
    "already_exists",
    `a worker named ${workerId} is already running; use a different worker id for each process`,
    {
      details: { workerId },
    },
  );
}

function removeFile(file: string): void {
  try {
    rmSync(file, { force: true });
  } catch {
    // Some systems cannot remove an open file. A remaining file does no harm, because its lock is free.
    return;
  }
}
