import { Fault, type FaultCode, type SubclassCode } from "../../../../kernel/index.ts";

interface Meaning {
  readonly code: Exclude<FaultCode, SubclassCode>;
  readonly says: string;
}

const locked: Meaning = { code: "store_unavailable", says: "is locked by another process" };
const broken: Meaning = {
  code: "store_corrupt",
  says: "is damaged or is not a SQLite database; restore a copy, or save what can be read with the sqlite3 shell's .recover",
};

/** By SQLite's primary result code. */
const meanings = new Map<number, Meaning>([
  [5, locked],
  [6, locked],
  [8, { code: "store_read_only", says: "cannot be written to; check the rights on the file and its folder" }],
  [10, { code: "store_unavailable", says: "could not be read or written by the file system" }],
  [11, broken],
  [13, { code: "store_full", says: "has no room to grow: the disk is full; free some space and go on" }],
  [14, { code: "store_unavailable", says: "could not be opened" }],
  [18, { code: "invalid_argument", says: "was given a value of more than a billion bytes" }],
  [26, broken],
]);

/** What SQLite reported, as a fault that says what to do; anything else as `Fault.from` has it. */
export function sqliteFault(error: unknown, path: string): Fault {
  const result = resultCode(error);
  const meaning = result === undefined ? undefined : meanings.get(result & 0xff);
  if (result === undefined || meaning === undefined) return Fault.from(error);
  return new Fault(meaning.code, `the store at ${path} ${meaning.says}`, {
    cause: error,
    details: { path, sqlite: result },
  });
}

/** Another connection holds the lock that is wanted. */
export function isBusy(error: unknown): boolean {
  const primary = (resultCode(error) ?? 0) & 0xff;
  return primary === 5 || primary === 6;
}

/** A misuse, as opposed to trouble with the file. */
export function isPlainError(error: unknown): boolean {
  return resultCode(error) === 1;
}

function resultCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !("errcode" in error)) return undefined;
  return typeof error.errcode === "number" ? error.errcode : undefined;
}
