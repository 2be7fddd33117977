import { accessSync, constants } from "node:fs";
import { dirname, resolve } from "node:path";
import { Fault } from "../../../../kernel/index.ts";

/** Suffixes of the files that SQLite writes for one store. */
const endings = ["", "-wal", "-shm"] as const;

/**
 * Returns the fault `store_read_only` if the file system or the rights of the user forbid writing a store at the
 * path, otherwise `undefined`. The errors of SQLite and of `mkdir` do not show this cause.
 */
export function readOnlyPlace(path: string, cause?: unknown): Fault | undefined {
  const files = endings.map((ending) => resolve(path) + ending);
  const why =
    files.map(refusalOf).find((each) => each !== undefined) ?? folderRefusal(dirname(resolve(path)));
  if (why === undefined) return undefined;
  return new Fault(
    "store_read_only",
    `the store at ${path} cannot be opened, because ${why}; SQLite writes the files of a store, and others beside it, also while it is only read: make them writable, or copy the store to a folder that can be written`,
    { cause, details: { path } },
  );
}

/** Returns why a folder cannot be written or, if it does not exist, why it cannot be created. */
function folderRefusal(folder: string): string | undefined {
  const refusal = refusalOf(folder);
  if (refusal !== undefined || exists(folder) || folder === dirname(folder)) return refusal;
  return folderRefusal(dirname(folder));
}

function exists(path: string): boolean {
  return codeOf(path, constants.F_OK) === undefined;
}

/** Returns why a file or folder cannot be written. `undefined` if it can be written, or does not exist. */
function refusalOf(path: string): string | undefined {
  const code = codeOf(path, constants.W_OK);
  if (code === "EROFS") return `${path} is on a read-only file system`;
  return code === "EACCES" || code === "EPERM" ? `this user has no right to write ${path}` : undefined;
}

function codeOf(path: string, mode: number): string | undefined {
  try {
    accessSync(path, mode);
    return undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code;
  }
}
