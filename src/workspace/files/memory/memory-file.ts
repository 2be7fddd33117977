import { createPatch } from "diff";
import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { copyFile, link, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Fault } from "../../../kernel/index.ts";
import { isAbsent, readNamedFile } from "../text/bounded-file.ts";
import { replaceText } from "../text/replace-text.ts";

/** Maximum size of each memory file in bytes. Every prompt contains the files, so they stay small. */
export const memoryLimits = { "MEMORY.md": 16 * 1024, "USER.md": 8 * 1024 } as const;

export type MemoryFileName = keyof typeof memoryLimits;

/** A change of a memory file. */
export interface MemoryChange {
  readonly file: MemoryFileName;
  /** Text to replace. It must occur exactly once. If empty, `new` is added at the end. */
  readonly old: string;
  readonly new: string;
}

/**
 * Changes a memory file and returns the change as a patch, which is empty if nothing changed. Only one process at a
 * time changes a file, and a reader sees the old or the new text. If a crash repeats a call with the same addition,
 * the second call changes nothing.
 */
export async function changeMemoryFile(folder: string, change: MemoryChange): Promise<string> {
  const path = join(folder, change.file);
  return inTurn(path, () => withLock(`${path}.lock`, () => changed(path, change)));
}

async function changed(path: string, { file, old, new: added }: MemoryChange): Promise<string> {
  const limit = memoryLimits[file];
  const before = (await readNamedFile("memory file", path, { maxBytes: limit * 16 }))?.text ?? "";
  const after = old === "" ? appended(before, added) : replaced(before, old, added, file);
  if (after === before) return "";
  const bytes = Buffer.byteLength(after);
  if (bytes > limit && bytes > Buffer.byteLength(before))
    throw new Fault(
      "too_large",
      `${file} would have ${bytes} bytes; the limit is ${limit}. Shorten or remove older entries first.`,
    );
  await replaceText(path, after);
  return createPatch(file, before, after, "", "", { context: 2 });
}

function appended(before: string, added: string): string {
  const text = added.trim();
  if (text === "" || before.trimEnd().endsWith(text)) return before;
  return before.trim() === "" ? `${text}\n` : `${before.trimEnd()}\n${text}\n`;
}

function replaced(before: string, old: string, added: string, file: string): string {
  const count = before.split(old).length - 1;
  if (count === 1) return before.replace(old, () => added);
  if (count === 0)
    throw new Fault("not_found", `${file} does not contain this text; read it again and use its exact words`);
  throw new Fault("invalid_argument", `${file} contains this text ${count} times; use a longer part of it`);
}

/** The last pending change of each file in this process. */
const turns = new Map<string, Promise<unknown>>();

/** Runs changes of one file in this process one after another. */
function inTurn<Result>(path: string, body: () => Promise<Result>): Promise<Result> {
  const before = turns.get(path) ?? Promise.resolve();
  const next = before.then(body, body);
  turns.set(path, next);
  const forget = (): void => {
    if (turns.get(path) === next) turns.delete(path);
  };
  next.then(forget, forget);
  return next;
}

/** Runs `body` while it holds a lock file. It removes the lock of a process that has died. */
async function withLock<Result>(lock: string, body: () => Promise<Result>): Promise<Result> {
  await take(lock);
  try {
    return await body();
  } finally {
    await rm(lock, { force: true });
  }
}

/**
 * Takes a lock. The lock file gets its name only when it is complete. A lock file without the id of a process was
 * therefore left by a crash of the machine, and is removed.
 */
async function take(lock: string): Promise<void> {
  const own = `${lock}.${randomUUID()}`;
  try {
    await writeFile(own, String(process.pid), { flag: "wx", mode: 0o600 });
    for (let attempt = 0; ; attempt++) {
      if (await isLinked(own, lock)) return;
      const holder = await readFile(lock, "utf8").catch(() => "");
      if (attempt > 0 || isAlive(Number(holder)))
        throw new Fault(
          "agent_busy",
          `process ${holder || "unknown"} writes this file at the moment; try again later, or delete ${lock} if that process is not Reeve`,
        );
      await removeStale(lock, holder);
    }
  } catch (error) {
    if (isAbsent(error))
      throw new Fault("not_found", `the folder of ${lock} does not exist`, { cause: error });
    throw error;
  } finally {
    await rm(own, { force: true });
  }
}

/** Creates a hard link to a file. Returns `false` if the name is already used. */
async function isLinked(file: string, name: string): Promise<boolean> {
  try {
    await link(file, name);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") return false;
    if (code === "EPERM" || code === "ENOTSUP") return isCopied(file, name);
    throw error;
  }
}

/**
 * Creates a copy of a file in place of a hard link, for a file system without hard links. Returns `false` if the
 * name is already used.
 */
async function isCopied(file: string, name: string): Promise<boolean> {
  try {
    await copyFile(file, name, constants.COPYFILE_EXCL);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

/** Removes the lock of a dead process. If another process has replaced the lock in this time, its lock stays. */
async function removeStale(lock: string, holder: string): Promise<void> {
  const stale = `${lock}.${randomUUID()}`;
  try {
    await rename(lock, stale);
  } catch (error) {
    if (isAbsent(error)) return;
    throw error;
  }
  if ((await readFile(stale, "utf8")) !== holder) await isLinked(stale, lock);
  await rm(stale, { force: true });
}

/** Whether a process exists. */
function isAlive(pid: number): boolean {
  if (!Number.isSafeInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
