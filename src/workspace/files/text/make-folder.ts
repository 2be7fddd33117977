import { mkdir, stat } from "node:fs/promises";
import { dirname } from "node:path";

/**
 * Creates a folder, and the missing folders above it. The option `recursive` of Node never ends in a file system that
 * refuses to create a folder with ENOENT, such as `/proc`.
 */
export async function makeFolder(path: string, mode = 0o777): Promise<void> {
  try {
    await mkdir(path, mode);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST" && (await stat(path)).isDirectory()) return;
    if (code !== "ENOENT" || dirname(path) === path) throw error;
    await makeFolder(dirname(path), mode);
    await mkdir(path, mode).catch(async (problem: NodeJS.ErrnoException) => {
      // Another process may have created it meanwhile.
      if (problem.code !== "EEXIST" || !(await stat(path)).isDirectory()) throw problem;
    });
  }
}
