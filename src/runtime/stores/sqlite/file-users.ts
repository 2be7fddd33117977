import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { Fault } from "../../../kernel/index.ts";

/** A process that has a store open. */
export interface StoreUser {
  readonly pid: number;
  /** Whether it was writing at that moment. */
  readonly isWriting: boolean;
}

/** The lock files of workers beside a store. */
export interface WorkerFiles {
  readonly files: number;
  /** How many of these files a live process holds. `null` if the system does not show this. */
  readonly live: number | null;
}

/** A lock of a process on a file, as Linux lists it. */
interface SystemLock {
  readonly isWrite: boolean;
  readonly pid: number;
  readonly inode: bigint;
  readonly from: number;
}

/** Returns the locks of all processes. `null` if the system does not list them. */
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

/** Offset of the lock that a connection holds while it writes, in the index of the log. */
const writeLock = 120;

/** Returns the other processes that have the store open. `null` if the system does not show this. */
export function usersOf(path: string): readonly StoreUser[] | null {
  const locks = systemLocks();
  if (locks === null) return null;
  const [file, index] = [inodeOf(path), inodeOf(`${path}-shm`)];
  const users = new Map<number, boolean>();
  for (const { pid, inode, isWrite, from } of locks)
    if ((inode === file || inode === index) && pid !== process.pid)
      users.set(pid, users.get(pid) === true || (inode === index && isWrite && from === writeLock));
  return [...users].map(([pid, isWriting]) => ({ pid, isWriting }));
}

/**
 * Throws for a file that a process has locked for itself. Such a file has no index of its log, and may change while
 * it is read.
 */
export function refuseLocked(path: string): void {
  const file = inodeOf(path);
  const lock = systemLocks()?.find(({ inode, isWrite }) => isWrite && inode === file);
  if (lock !== undefined)
    throw new Fault("store_unavailable", `the store at ${path} is locked by process ${lock.pid}`);
}

function inodeOf(path: string): bigint | undefined {
  return statSync(path, { bigint: true, throwIfNoEntry: false })?.ino;
}

/** Counts the lock files in the folder of the workers. */
export function workersOf(folder: string): WorkerFiles {
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
