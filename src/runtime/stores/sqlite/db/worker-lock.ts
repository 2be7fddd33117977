import { createHash } from "node:crypto";
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Fault } from "../../../../kernel/index.ts";
import { BusyWait } from "./busy-wait.ts";
import { isBusy, sqliteFault } from "./sqlite-fault.ts";

/** Someone who only looks whether a worker is gone has its lock for an instant: long enough to be taken for the worker. */
const patienceMs = 500;

/**
 * Who is alive: each worker holds the lock on a file of its own, beside the database, for as long as its process lives. The system
 * lets go of it the moment the process is killed, and not while it is stopped or the machine sleeps. The lock is SQLite's, an open
 * exclusive transaction on an empty file, since Node has no other.
 *
 * - K1 Only who holds the lock removes the file, so a file that is there is the one that counts.
 * - K2 Nothing but SQLite opens these files: a process that closed one by other means would lose its locks on it.
 */
export class WorkerLocks {
  readonly #folder: string;
  readonly #held = new Map<string, DatabaseSync>();
  /** Connections to the files of others who lived when last looked at. */
  readonly #probes = new Map<string, DatabaseSync>();

  constructor(path: string) {
    this.#folder = `${path}-workers`;
  }

  /** False: it was held already. Refused with `already_exists` when another worker of this name lives. */
  async take(workerId: string): Promise<boolean> {
    if (this.#held.has(workerId)) return false;
    mkdirSync(this.#folder, { recursive: true });
    const wait = new BusyWait();
    const file = this.#file(workerId);
    for (;;) {
      const lock = openLock(file);
      const found = tryLock(lock, file);
      if (found === "taken" && this.#isOnFile(workerId)) {
        this.#held.set(workerId, lock);
        return true;
      }
      lock.close();
      if (wait.elapsedMs > patienceMs) throw refusal(workerId, found);
      await wait.pause();
      if (this.#held.has(workerId)) return false;
    }
  }

  drop(workerId: string): void {
    const lock = this.#held.get(workerId);
    if (lock === undefined) return;
    this.#held.delete(workerId);
    removeFile(this.#file(workerId));
    lock.close();
  }

  isGone(workerId: string): boolean {
    if (this.#held.has(workerId)) return false;
    const file = this.#file(workerId);
    const probe = this.#probes.get(workerId);
    if (probe !== undefined && tryLock(probe, file) === "busy") return false;
    // What was held may have been removed and made anew meanwhile: only the file that is there now counts.
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

  /** The others are not asked about any more. */
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

  /** K1: whether the lock just taken is on the file that others see, and not on one that was removed before it was taken. */
  #isOnFile(workerId: string): boolean {
    const file = this.#file(workerId);
    if (!existsSync(file)) return false;
    const second = openLock(file);
    const found = tryLock(second, file);
    second.close();
    return found === "busy";
  }

  #file(workerId: string): string {
    return join(this.#folder, createHash("sha256").update(workerId).digest("hex").slice(0, 32));
  }
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
    // No journal is wanted beside the file: nothing is ever written.
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
    `a worker called ${workerId} lives already; give each a name of its own`,
    {
      details: { workerId },
    },
  );
}

function removeFile(file: string): void {
  try {
    rmSync(file, { force: true });
  } catch {
    // Some systems keep a file that is open. Left behind, it tells the truth: its lock is free.
    return;
  }
}
