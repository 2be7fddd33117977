import { readBytes } from "./file-lines.ts";
import { Worker } from "node:worker_threads";
import { dirname, isAbsolute, join } from "node:path";
import { type CancelSignal, Fault } from "../../kernel/index.ts";
import type { FileRoot } from "./file-root.ts";

/** Maximum number of bytes of a `.gitignore` that are read. */
const maxBytes = 65_536;

/** Globs of files that searches leave out in every folder. */
const alwaysIgnored: readonly string[] = ["**/.git", "**/.git/**", "**/node_modules/**"];

/**
 * Returns globs, relative to the root, of files that searches leave out: `.git`, `node_modules`, and the files that
 * the root's `.gitignore` excludes. Lines with `!` are ignored, so that files which they would include again are
 * left out too.
 */
async function ignoredFiles(root: FileRoot): Promise<readonly string[]> {
  return [...alwaysIgnored, ...(await gitIgnored(root))];
}

async function gitIgnored(root: FileRoot): Promise<readonly string[]> {
  try {
    const { folder, file } = await root.read(".gitignore");
    try {
      const text = Buffer.from(await readBytes(file, 0, maxBytes)).toString("utf8");
      return text.split(/\r?\n/).flatMap(globsOf);
    } finally {
      await file.close();
      await folder.close();
    }
  } catch (error) {
    // There is no .gitignore, or it is not a regular file: then it excludes nothing.
    if (Fault.is(error)) return [];
    throw error;
  }
}

/** Returns the globs of one line of a `.gitignore`: for the named path and everything below it. */
function globsOf(line: string): readonly string[] {
  const rule = line.replace(/(?<!\\)\s+$/, "");
  if (rule === "" || rule.startsWith("#") || rule.startsWith("!")) return [];
  const path = rule.replace(/^\\(?=[#!])/, "").replace(/\/+$/, "");
  const isFolder = rule.endsWith("/");
  const anchored = path.includes("/") ? path.replace(/^\//, "") : `**/${path}`;
  if (anchored === "" || anchored === "**/") return [];
  return isFolder ? [`${anchored}/**`] : [anchored, `${anchored}/**`];
}

/** Query of `globSearch()`. */
interface GlobQuery {
  readonly pattern: string;
  /** Folder to which the pattern is relative. */
  readonly cwd: string;
  /** Globs of files to leave out. */
  readonly ignore: readonly string[];
}

/**
 * Code of the search thread. The glob comes from the model or a `.gitignore`. If it takes too long, the search is
 * stopped by ending the thread.
 */
const program = `
  const { parentPort, workerData: { library, pattern, options } } = require("node:worker_threads");
  void import(library).then(async ({ glob }) => parentPort.postMessage(await glob(pattern, options)));
`;

/**
 * Returns the files that match, as paths relative to `cwd`. Links below `cwd` are not followed, but a link at the start
 * of the pattern is.
 */
async function globSearch(query: GlobQuery, signal: CancelSignal): Promise<readonly string[]> {
  const { pattern, cwd, ignore } = query;
  const options = { cwd, ignore, dot: true, expandDirectories: false, followSymbolicLinks: false };
  const library = import.meta.resolve("tinyglobby");
  signal.throwIfAborted();
  // execArgv is empty because options of the parent process, such as --input-type, may be invalid for a thread.
  const worker = new Worker(program, {
    eval: true,
    execArgv: [],
    workerData: { library, pattern, options },
  });
  const found = new Promise<readonly string[]>((resolve, reject) => {
    const stop = (): void => reject(signal.reason as Error);
    signal.addEventListener("abort", stop, { once: true });
    worker.once("message", resolve);
    worker.once("error", (error) => reject(Fault.from(error)));
    worker.once("exit", () => {
      signal.removeEventListener("abort", stop);
      reject(new Fault("tool_failed", "the search thread ended without a result"));
    });
  });
  try {
    return await found;
  } finally {
    await worker.terminate();
  }
}

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
 * Returns the sorted paths, relative to the root, of the files that match. Links are not followed. A returned file
 * may have been deleted or replaced since the search.
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

/**
 * Whether the files were reached without a link. If the pattern contained a link, its target may be outside the
 * root.
 */
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
 * Converts a glob relative to the root to globs relative to a folder in the root. A folder that is itself excluded
 * is searched anyway, because the caller named it.
 */
function below(from: string, glob: string): readonly string[] {
  if (from === "." || glob.startsWith("**/")) return [glob];
  return glob.startsWith(`${from}/`) && glob !== `${from}/**` ? [glob.slice(from.length + 1)] : [];
}
