import { dirname, isAbsolute, join } from "node:path";
import { Fault, type CancelSignal } from "../../kernel/index.ts";
import type { FileRoot } from "./file-root.ts";
import { globSearch } from "./glob-search.ts";
import { alwaysIgnored, ignoredFiles } from "./ignored-files.ts";

/** Query of `matchingFiles()`. */
export interface FileQuery {
  readonly pattern: string;
  /** Folder to which the pattern is relative. */
  readonly path: string;
  /** Whether to include files that searches usually leave out. */
  readonly ignored: boolean;
  readonly signal: CancelSignal;
}

/**
 * Returns the sorted paths, relative to the root, of the files that match. Links are not followed. A returned file may
 * have been deleted or replaced meanwhile.
 */
export async function matchingFiles(root: FileRoot, query: FileQuery): Promise<readonly string[]> {
  const { pattern, path, ignored, signal } = query;
  // The pattern is also checked without backslashes, which may escape any character of a glob.
  const spellings = [pattern, pattern.replaceAll("\\", "")];
  if (spellings.some((each) => isAbsolute(each) || each.split(/[\\/]/).includes("..")))
    throw new Fault(
      "permission_denied",
      `${pattern} leads outside the folder: use a pattern relative to the folder, without ..`,
    );
  const folder = await root.folder(path);
  try {
    const from = await root.shown(folder.path);
    // The `.gitignore` of the root does not apply to a further folder, whose path is absolute.
    const left = ignored ? [] : isAbsolute(from) ? alwaysIgnored : await ignoredFiles(root);
    const ignore = left.flatMap((each) => below(from, each));
    const found = await globSearch({ pattern, cwd: folder.here, ignore }, signal);
    await folder.verify();
    const files = found.map((name) => (from === "." ? name : join(from, name)));
    return (await isWalked(root, files)) ? files.toSorted() : [];
  } finally {
    await folder.close();
  }
}

/** Whether the files were reached without a link. If the pattern named a link, its target may be outside the root. */
async function isWalked(root: FileRoot, files: readonly string[]): Promise<boolean> {
  const shared = sharedFolder(files);
  try {
    const folder = await root.folder(shared);
    await folder.close();
    return (await root.shown(folder.path)) === shared;
  } catch (error) {
    if (Fault.is(error)) return false;
    throw error;
  }
}

function sharedFolder([first = "", ...others]: readonly string[]): string {
  let shared = dirname(first);
  while (shared !== "." && !others.every((file) => file.startsWith(`${shared}/`))) shared = dirname(shared);
  return shared;
}

/**
 * Converts a glob relative to the root to globs relative to a folder in the root. If the folder itself is excluded, it
 * is searched nevertheless, because the caller named it.
 */
function below(from: string, glob: string): readonly string[] {
  if (from === "." || glob.startsWith("**/")) return [glob];
  return glob.startsWith(`${from}/`) && glob !== `${from}/**` ? [glob.slice(from.length + 1)] : [];
}
