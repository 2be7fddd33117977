import { isAbsolute, join } from "node:path";
import { Fault, type CancelSignal } from "../../kernel/index.ts";
import type { FileRoot } from "./file-root.ts";
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
  if (isAbsolute(pattern) || pattern.split(/[\\/]/).includes(".."))
    throw new Fault("permission_denied", `${pattern} leads outside: write it from the folder, without ..`);
  const folder = await root.folder(path);
  try {
    const { glob } = await import("tinyglobby");
    const from = await root.shown(folder.path);
    const left = ignored ? [] : await ignoredFiles(root);
    const found = await glob(pattern, {
      cwd: folder.here,
      dot: true,
      expandDirectories: false,
      followSymbolicLinks: false,
      ignore: left.flatMap((each) => below(from, each)),
      signal,
    });
    await folder.verify();
    return found.map((name) => (from === "." ? name : join(from, name))).toSorted();
  } finally {
    await folder.close();
  }
}

/** A glob from the root as one from a folder in it. A folder that is left out itself is looked into when it is named. */
function below(from: string, glob: string): readonly string[] {
  if (from === "." || glob.startsWith("**/")) return [glob];
  return glob.startsWith(`${from}/`) && glob !== `${from}/**` ? [glob.slice(from.length + 1)] : [];
}
