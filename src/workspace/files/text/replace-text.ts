import { randomUUID } from "node:crypto";
import { open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { makeFolder } from "./make-folder.ts";

/**
 * Writes a file as a whole: a reader sees the old or the new text, also after a crash. The file can be read only by its
 * owner. Missing folders are created.
 */
export async function replaceText(path: string, text: string): Promise<void> {
  await makeFolder(dirname(path), 0o700);
  const temporary = `${path}.${randomUUID()}.tmp`;
  try {
    const file = await open(temporary, "wx", 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
