import { randomUUID } from "node:crypto";
import { open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { makeFolder } from "./make-folder.ts";

/** Options of `replaceText`. */
export interface ReplaceOptions {
  /** Permissions of the file. Default: only its owner can read it. */
  readonly mode?: number;
  /** Called before the new text replaces the old one. If it throws, the old text is kept. */
  readonly before?: () => Promise<void>;
}

/**
 * Writes a file as a whole: a reader sees either the old or the new text, even after a crash. Missing folders are
 * created.
 */
export async function replaceText(
  path: string,
  text: string,
  { mode = 0o600, before }: ReplaceOptions = {},
): Promise<void> {
  await makeFolder(dirname(path), 0o700);
  const temporary = `${path}.${randomUUID()}.tmp`;
  try {
    const file = await open(temporary, "wx", mode);
    try {
      await file.chmod(mode);
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await before?.();
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
