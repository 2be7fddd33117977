import { Fault, type FaultCode, type SubclassCode } from "../../../../kernel/index.ts";
import { readOnlyPlace } from "./read-only-place.ts";

interface Meaning {
  readonly code: Exclude<FaultCode, SubclassCode>;
  readonly says: string;
}

const locked: Meaning = { code: "store_unavailable", says: "is locked by another process" };
const broken: Meaning = {
  code: "store_corrupt",
  says: "is damaged or is not a SQLite database; restore a copy, or save what can be read with the sqlite3 shell's .recover",
};

/** Faults by SQLite's primary result code. */
const meanings = new Map<number, Meaning>([
  [5, locked],
  [6, locked],
  [
    8,
    { code: "store_read_only", says: "cannot be written; check the permissions of the file and its folder" },
  ],
  [10, { code: "store_unavailable", says: "could not be read or written by the file system" }],
  [11, broken],
  [13, { code: "store_full", says: "cannot grow because the disk is full; free some space" }],
  [
    14,
    {
      code: "store_unavailable",
      says: "could not be opened; check that the path names a file, and that this process may open more files",
    },
  ],
  [18, { code: "invalid_argument", says: "was given a value larger than a billion bytes" }],
  [26, broken],
]);

/** SQLite result codes for a place that cannot be written: SQLITE_READONLY, SQLITE_IOERR and SQLITE_CANTOPEN. */
const ofReadOnlyPlaces: ReadonlySet<number> = new Set([8, 10, 14]);

/** Converts an error of SQLite into a fault that says what to do. Any other error is converted with `Fault.from`. */
export function sqliteFault(error: unknown, path: string): Fault {
  const result = resultCode(error);
  const meaning = result === undefined ? undefined : meanings.get(result & 0xff);
  if (result === undefined || meaning === undefined) return Fault.from(error);
  const readOnly = ofReadOnlyPlaces.has(result & 0xff) ? readOnlyPlace(path, error) : undefined;
  if (readOnly !== undefined) return readOnly;
  return new Fault(meaning.code, `the store at ${path} ${meaning.says}`, {
    cause: error,
    details: { path, sqlite: result },
  });
}

/** Whether the error says that another connection holds the lock. */
export function isBusy(error: unknown): boolean {
  const primary = (resultCode(error) ?? 0) & 0xff;
  return primary === 5 || primary === 6;
}

/** Whether the error is SQLITE_ERROR, which means a wrong statement and not a problem with the file. */
export function isPlainError(error: unknown): boolean {
  return resultCode(error) === 1;
}

function resultCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !("errcode" in error)) return undefined;
  return typeof error.errcode === "number" ? error.errcode : undefined;
}
