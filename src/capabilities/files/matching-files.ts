import { dirname, isAbsolute, join } from "node:path";
import { Fault, type CancelSignal } from "../../kernel/index.ts";
import type { FileRoot } from "./file-root.ts";
import { globSearch } from "./glob-search.ts";
import { ignoredFiles } from "./ignored-files.ts";

export interface FileQuery {
  readonly pattern: string;
  /** The folder it is matched from. */
  readonly path: string;
  /** Show also what is usually left out. */
  readonly ignored: boolean;
  readonly signal: CancelSignal;
}

/** Paths from the root of the files that match, sorted. Links are not followed; what is given may be gone by now, or be another file. */
export async function matchingFiles(root: FileRoot, query: FileQuery): Promise<readonly string[]> {
  const { pattern, path, ignored, signal } = query;
  // Also where a sign is written with a backslash before it.
  const spellings = [pattern, pattern.replaceAll("\\", "")];
  if (spellings.some((each) => isAbsolute(each) || each.split(/[\\/]/).includes("..")))
    throw new Fault("permission_denied", `${pattern} leads outside: write it from the folder, without ..`);
  const folder = await root.folder(path);
  try {
    const from = await root.shown(folder.path);
    const left = ignored ? [] : await ignoredFiles(root);
    const ignore = left.flatMap((each) => below(from, each));
    const found = await globSearch({ pattern, cwd: folder.here, ignore }, signal);
    await folder.verify();
    const files = found.map((name) => (from === "." ? name : join(from, name)));
    return (await isWalked(root, files)) ? files.toSorted() : [];
  } finally {
    await folder.close();
  }
}

/** False when the way to what was found leads through a link: the pattern named it, and what it leads to may lie outside. */
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

/** A glob from the root as one from a folder in it. A folder that is left out itself is looked into when it is named. */
function below(from: string, glob: string): readonly string[] {
  if (from === "." || glob.startsWith("**/")) return [glob];
  return glob.startsWith(`${from}/`) && glob !== `${from}/**` ? [glob.slice(from.length + 1)] : [];
}
