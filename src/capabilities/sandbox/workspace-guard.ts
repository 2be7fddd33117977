import { randomUUID } from "node:crypto";
import { fstatSync, readlinkSync, renameSync, symlinkSync, watch, type FSWatcher } from "node:fs";
import { readdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { Fault } from "../../kernel/index.ts";
import { configTargets } from "../files/control-files.ts";
import { configText, isInside, realPathOf } from "../files/control-references.ts";
import { codeOf } from "../files/error-code.ts";
import type { Mount } from "./bubblewrap.ts";
import {
  at,
  ControlScan,
  inode,
  statOf,
  type AlsoGuarded,
  type OpenEntry,
  type Unmountable,
} from "./control-scan.ts";

/** Changes of control files during a command. */
export interface GuardChanges {
  /** Control files that the command created. */
  readonly created?: readonly string[];
  /** Control files whose creation or change was undone. */
  readonly undone?: readonly string[];
}

/** Maximum number of searches for files to which control files refer. The search repeats until it finds no more. */
const maxRounds = 5;

/**
 * Protects the control files of folders while one command runs in a sandbox.
 *
 * - G1: control files that exist are mounted read-only: by name, and where a link, a hard link, `core.hooksPath` or
 *   `include.path` of a git configuration leads to. Their parent folders are mount points, too, so that they cannot
 *   be renamed.
 * - G2: nothing is created in the folders to make them mount points.
 * - G3: control files that do not exist in an existing git folder, and control files that are links, cannot be
 *   mounted. If a command creates or replaces one, the new file is renamed, the link is restored at once, and the
 *   command is stopped. Otherwise a program of the user, such as an editor that asks git for the status every few
 *   seconds, would use the file while the command runs.
 * - G4: other control files that a command creates, such as those of a new repository, are reported.
 *
 * `node_modules` is not searched. A process outside the sandbox that replaces a control file during the command
 * makes the new file writable for that command.
 */
export class WorkspaceGuard {
  /** Mounts of the folders and their control files, parents before children. */
  readonly mounts: readonly Mount[];
  readonly #roots: readonly string[];
  readonly #scan: ControlScan;
  readonly #undone = new Set<string>();

  private constructor(roots: readonly string[], scan: ControlScan) {
    this.#roots = roots;
    this.#scan = scan;
    this.mounts = scan.entries.map(({ path, access, fd }) => ({ path, access, fd }));
  }

  /** Finds the control files of the folders and keeps them open. The caller must call `end()`. */
  static async open(folders: readonly string[]): Promise<WorkspaceGuard> {
    const roots = folders
      .map((folder) => resolve(folder))
      .filter((folder, index, all) => all.indexOf(folder) === index)
      .filter((folder, _, all) => !all.some((other) => other !== folder && isInside(folder, other)));
    let also: AlsoGuarded = { paths: new Set(), inodes: new Set() };
    for (let round = 0; round < maxRounds; round++) {
      const scan = await scanned(roots, also);
      const more = await referred(scan, roots).catch((error: unknown) => {
        scan.close();
        throw error;
      });
      const paths = new Set([...also.paths, ...more.paths]);
      const inodes = new Set([...also.inodes, ...more.inodes]);
      if (paths.size === also.paths.size && inodes.size === also.inodes.size)
        return new WorkspaceGuard(roots, scan);
      scan.close();
      also = { paths, inodes };
    }
    throw new Fault(
      "invalid_argument",
      `the control files in ${roots.join(", ")} include each other more than ${maxRounds} levels deep; remove the cycle or shorten the chain`,
    );
  }

  /**
   * G3: undoes a change as soon as the kernel reports it, and calls `stop`. Returns a function that ends the watch.
   * If the kernel allows the user no more watches, only `end()` undoes changes.
   */
  watch(stop: () => void): () => void {
    const watchers = new Map<OpenEntry, FSWatcher>();
    const look = (): void => {
      try {
        if (this.#undo()) stop();
      } catch {
        // The command changes the file at the same time. It is stopped, and `end()` undoes the change.
        stop();
      }
    };
    try {
      for (const { folder } of this.#scan.unmountable)
        if (!watchers.has(folder))
          watchers.set(folder, watch(at(folder, "."), { persistent: false }, look).on("error", look));
    } catch (error) {
      if (!outOfWatches.has(codeOf(error) ?? "")) throw error;
    }
    return () => {
      for (const each of watchers.values()) each.close();
    };
  }

  /** Undoes changes that could not be prevented (G3), reports new control files (G4), and releases all descriptors. */
  async end(): Promise<GuardChanges> {
    try {
      this.#undo();
      const undone = [...this.#undone];
      const before = new Set(this.#scan.found);
      const after = await scanned(this.#roots, { paths: new Set(), inodes: new Set() });
      after.close();
      const created = after.found.filter((path) => !before.has(path));
      return { ...(created.length > 0 && { created }), ...(undone.length > 0 && { undone }) };
    } finally {
      this.#scan.close();
    }
  }

  /** Undoes all changes of files that cannot be mounted. Returns whether there were changes. */
  #undo(): boolean {
    const changed = this.#scan.unmountable.filter(undo);
    for (const { folder, name } of changed) this.#undone.add(join(folder.path, name));
    return changed.length > 0;
  }
}

/** Error codes that say that the user has used up the watches of the kernel. */
const outOfWatches: ReadonlySet<string> = new Set(["ENOSPC", "EMFILE", "ENFILE"]);

async function scanned(roots: readonly string[], also: AlsoGuarded): Promise<ControlScan> {
  const scan = new ControlScan(also);
  try {
    for (const root of roots) await scan.scan(root);
    return scan;
  } catch (error) {
    scan.close();
    throw error;
  }
}

/** Returns the files inside the roots to which the found control files refer, and those that have several names. */
async function referred(scan: ControlScan, roots: readonly string[]): Promise<AlsoGuarded> {
  const paths = new Set<string>();
  const inodes = new Set<string>();
  const add = async (target: string): Promise<void> => {
    const real = await realPathOf(target);
    if (real !== undefined && roots.some((root) => real !== root && isInside(real, root))) paths.add(real);
  };
  for (const { folder, name, target } of scan.unmountable)
    // Git folders are recognised by their entries, and must stay writable.
    if (target !== null && name !== ".git") await add(resolve(folder.path, target));
  for (const folder of scan.gitFolders)
    for (const target of configTargets(await configText(at(folder, "config")), folder.path))
      await add(target);
  for (const entry of scan.entries)
    if (entry.access === "read") for (const each of await sharedInodes(entry)) inodes.add(each);
  return { paths, inodes };
}

/** Returns the identities of a control file, or of the files in a control folder, that have several names. */
async function sharedInodes(entry: OpenEntry): Promise<readonly string[]> {
  const stats = fstatSync(entry.fd);
  if (stats.isFile()) return stats.nlink > 1 ? [inode(stats)] : [];
  if (!stats.isDirectory()) return [];
  const shared: string[] = [];
  for (const child of await readdir(at(entry, "."), { recursive: true, withFileTypes: true })) {
    if (!child.isFile()) continue;
    const file = statOf(join(child.parentPath, child.name));
    if (file !== undefined && file.nlink > 1) shared.push(inode(file));
  }
  return shared;
}

/**
 * Renames a file that a command has put in place of a control file, and restores a link. Returns whether anything
 * changed.
 */
function undo({ folder, name, target }: Unmountable): boolean {
  const path = at(folder, name);
  const stats = statOf(path);
  if (stats === undefined && target === null) return false;
  if (target !== null && stats?.isSymbolicLink() === true && readlinkSync(path) === target) return false;
  if (stats !== undefined) renameSync(path, at(folder, `${name}.refused-${randomUUID().slice(0, 8)}`));
  if (target !== null) symlinkSync(target, path);
  return true;
}
