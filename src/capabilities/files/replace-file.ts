import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { lstat, open, rename, rm } from "node:fs/promises";
import { Fault } from "../../kernel/index.ts";
import { codeOf } from "./error-code.ts";
import { openRegular, type Place } from "./file-root.ts";

/** Identity and version of a file at one moment. */
export interface FileState {
  readonly dev: bigint;
  readonly ino: bigint;
  readonly size: bigint;
  readonly mtimeNs: bigint;
  readonly mode: bigint;
}

/** Returns the state of a file without following a link, or `null` if it does not exist. */
export async function fileState({ folder, name }: Place): Promise<FileState | null> {
  try {
    return await lstat(folder.at(name), { bigint: true });
  } catch (error) {
    if (codeOf(error) === "ENOENT") return null;
    throw error;
  }
}

/**
 * Replaces a file atomically. It keeps the file's permissions, but not setuid, setgid and the sticky bit, which the
 * system also removes when another user writes a file. If the process dies here, the old file stays, and perhaps a
 * temporary `.reeve-` file in the same folder. Throws `already_exists` if the file is no longer in the state
 * `before`; `null` means that it did not exist.
 */
export async function replaceFile(place: Place, bytes: Uint8Array, before: FileState | null): Promise<void> {
  const { folder, name, shown } = place;
  // Checked first, because a rename would replace even a file that may not be written.
  if (before !== null) await (await openRegular(place, shown, constants.O_WRONLY)).close();
  const draft = `.reeve-${randomUUID()}`;
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
  const mode = before === null ? undefined : Number(before.mode & 0o777n);
  const file = await open(folder.at(draft), O_WRONLY | O_CREAT | O_EXCL | (O_NOFOLLOW ?? 0), mode);
  try {
    try {
      await folder.verify();
      await file.writeFile(bytes);
      if (mode !== undefined) await file.chmod(mode);
      await file.sync();
    } finally {
      await file.close();
    }
    await assertSame(place, before);
    await rename(folder.at(draft), folder.at(name));
  } catch (error) {
    await rm(folder.at(draft), { force: true });
    throw error;
  }
}

/** Deletes a file. Throws `already_exists` if the file is no longer in the state `before`. */
export async function removeFile(place: Place, before: FileState): Promise<void> {
  const { folder, name } = place;
  await folder.verify();
  await assertSame(place, before);
  await rm(folder.at(name));
}

async function assertSame(place: Place, before: FileState | null): Promise<void> {
  if (!isSame(before, await fileState(place)))
    throw new Fault(
      "already_exists",
      `another process has changed ${place.shown} since it was read: read it again`,
    );
}

function isSame(one: FileState | null, other: FileState | null): boolean {
  if (one === null || other === null) return one === other;
  return (
    one.dev === other.dev && one.ino === other.ino && one.size === other.size && one.mtimeNs === other.mtimeNs
  );
}
