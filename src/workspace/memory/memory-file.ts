import { createPatch } from "diff";
import { open, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { Fault } from "../../kernel/index.ts";
import { isAbsent, readTextFile } from "../files/bounded-file.ts";
import { replaceText } from "../files/replace-text.ts";

/** Maximum size of each memory file in bytes. Every prompt contains the files, so they stay small. */
export const memoryLimits = { "MEMORY.md": 16 * 1024, "USER.md": 8 * 1024 } as const;

export type MemoryFileName = keyof typeof memoryLimits;

/** A change of a memory file. */
export interface MemoryChange {
  readonly file: MemoryFileName;
  /** Text to replace. It must occur exactly once. Empty: `new` is added at the end. */
  readonly old: string;
  readonly new: string;
}

/**
 * Changes a memory file and returns the difference as a patch, empty if nothing changed. Only one process at a time
 * changes a file, and a reader sees the old or the new text. A repeated call with the same addition changes nothing, so
 * that a call that a crash repeats has one effect.
 */
export async function changeMemoryFile(folder: string, change: MemoryChange): Promise<string> {
  const path = join(folder, change.file);
  return inTurn(path, () => withLock(`${path}.lock`, () => changed(path, change)));
}

async function changed(path: string, { file, old, new: added }: MemoryChange): Promise<string> {
  const limit = memoryLimits[file];
  const before = (await readTextFile(path, { maxBytes: limit * 16 }))?.text ?? "";
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

/** The last change of each file in this process. */
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

/** Holds a lock file during `body`. The lock of a process that has died is removed. */
async function withLock<Result>(lock: string, body: () => Promise<Result>): Promise<Result> {
  await take(lock);
  try {
    return await body();
  } finally {
    await rm(lock, { force: true });
  }
}

async function take(lock: string): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    try {
      const file = await open(lock, "wx", 0o600);
      await file.writeFile(String(process.pid));
      await file.close();
      return;
    } catch (error) {
      if (isAbsent(error))
        throw new Fault("not_found", `the folder of ${lock} does not exist`, { cause: error });
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    const holder = Number(await readFile(lock, "utf8").catch(() => ""));
    if (attempt > 0 || isAlive(holder))
      throw new Fault("agent_busy", `another process writes this file at the moment; try again later`);
    await rm(lock, { force: true });
  }
}

/** Whether a process exists. A lock without a readable process id may be in the making and counts as held. */
function isAlive(pid: number): boolean {
  if (!Number.isSafeInteger(pid) || pid <= 0) return true;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
