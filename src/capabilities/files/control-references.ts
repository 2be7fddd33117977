import { lstat, readdir, readFile, readlink, realpath } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, relative, resolve } from "node:path";
import { configTargets, isControlName } from "./control-files.ts";
import { codeOf } from "./error-code.ts";

/** Maximum number of bytes of a git configuration that are read. */
const maxConfigBytes = 1024 * 1024;

/**
 * Whether a control file in a folder between the root and the path refers to the path: as a link, or as `core.hooksPath`
 * or `include.path` of a git configuration. Both paths are real paths.
 */
export async function isReferred(root: string, path: string): Promise<boolean> {
  for (let folder = dirname(path); isInside(folder, root); folder = dirname(folder)) {
    for (const target of await targetsIn(folder))
      if (isInside(path, (await realPathOf(target)) ?? target)) return true;
    if (folder === root) break;
  }
  return false;
}

async function targetsIn(folder: string): Promise<readonly string[]> {
  const targets: string[] = [];
  for (const entry of await readdir(folder, { withFileTypes: true }).catch(ignoreAbsent)) {
    const path = join(folder, entry.name);
    if (entry.isSymbolicLink() && isControlName(entry.name, basename(folder)))
      targets.push(resolve(folder, await readlink(path)));
    if (entry.name === ".git" && entry.isDirectory())
      targets.push(...configTargets(await configText(join(path, "config")), path));
  }
  return targets;
}

/**
 * Returns the text of a git configuration. Empty for a file that is absent, unreadable or very large, or is a link.
 */
export async function configText(path: string): Promise<string> {
  try {
    const stats = await lstat(path);
    return stats.isFile() && stats.size <= maxConfigBytes ? await readFile(path, "utf8") : "";
  } catch (error) {
    ignoreAbsent(error);
    return "";
  }
}

/** Returns the real path, or `undefined` if nothing that this process may see exists there. */
export async function realPathOf(path: string): Promise<string | undefined> {
  try {
    return await realpath(path);
  } catch (error) {
    ignoreAbsent(error);
    return undefined;
  }
}

/** Whether a path is a folder or inside it. */
export function isInside(path: string, folder: string): boolean {
  const inside = relative(folder, path);
  return inside === "" || (inside !== ".." && !/^\.\.[\\/]/u.test(inside) && !isAbsolute(inside));
}

function ignoreAbsent(error: unknown): [] {
  const code = codeOf(error);
  if (code === "ENOENT" || code === "ELOOP" || code === "ENOTDIR" || code === "EACCES") return [];
  throw error;
}
