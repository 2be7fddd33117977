import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  type Dirent,
  type Stats,
} from "node:fs";
import { basename, join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { Fault } from "../../kernel/index.ts";
import { gitControls, isControlName, isGitFolder, plainName } from "../files/control-files.ts";
import { codeOf } from "../files/error-code.ts";

/** An open file or folder. Its descriptor grants no access to its content. */
export interface OpenEntry {
  readonly path: string;
  readonly fd: number;
  /** Whether commands may write the entry. A writable folder is mounted only so that it cannot be renamed. */
  readonly access: "read" | "write";
}

/** A control file that cannot be mounted, because it does not exist or is a link. */
export interface Unmountable {
  /** Folder that contains it, held open. */
  readonly folder: OpenEntry;
  readonly name: string;
  /** Target of the link, or `null` if nothing exists under the name. */
  readonly target: string | null;
}

/** Further paths to protect, in addition to the control files that are recognised by name, such as `.git/config`. */
export interface AlsoGuarded {
  /** Absolute paths that count as control files, because a control file refers to them. */
  readonly paths: ReadonlySet<string>;
  /** Identities (inodes) of control files that have several names. Each of the names counts as a control file. */
  readonly inodes: ReadonlySet<string>;
}

/** Maximum number of folders that one scan visits. */
const maxFolders = 50_000;

/** Number of folders that are visited in one turn of the event loop, which takes about 2 ms. */
const foldersPerTurn = 50;

/** Maximum number of files and folders that are kept open for one command. */
const maxEntries = 1_000;

/**
 * Linux's O_PATH, which Node does not export. A descriptor with it names a file without opening it, so that no
 * permission is needed and a pipe does not block.
 */
const O_PATH = 0o10_000_000;

/** Folders that are not searched. Git executes nothing in the first three, and packages are rarely repositories. */
const skippedInGit: readonly string[] = ["objects", "refs", "logs", "lfs"];
const skipped = "node_modules";

/**
 * One search for the control files of a folder. It uses synchronous calls, which take a tenth of the time, and
 * regularly lets other work of the process run. Every part of a path is opened through its parent, without
 * following links.
 */
export class ControlScan {
  /** Folders and control files to mount, parents before children. The root comes first. */
  readonly entries: OpenEntry[] = [];
  readonly unmountable: Unmountable[] = [];
  /** Paths of the control files that exist. */
  readonly found: string[] = [];
  /** Git folders, held open. */
  readonly gitFolders: OpenEntry[] = [];
  readonly #also: AlsoGuarded;
  #folders = 0;

  constructor(also: AlsoGuarded) {
    this.#also = also;
  }

  /** Searches a folder. The path itself may be a link. */
  async scan(root: string): Promise<void> {
    const fd = openSync(root, O_PATH | constants.O_DIRECTORY);
    const entry: OpenEntry = { path: root, fd, access: "write" };
    this.entries.push(entry);
    await this.#folder(entry);
  }

  /** Releases all descriptors. */
  close(): void {
    for (const { fd } of this.entries.splice(0)) closeSync(fd);
  }

  /** Searches a folder and returns whether it must be mounted. */
  async #folder(folder: OpenEntry): Promise<boolean> {
    if (++this.#folders > maxFolders)
      throw new Fault(
        "invalid_argument",
        `the workspace has more than ${maxFolders} folders, so its control files cannot be protected; use a smaller folder as root`,
      );
    if (this.#folders % foldersPerTurn === 0) await setImmediate();
    const children = childrenOf(folder);
    const names = new Map(children.map((child) => [child.name, child]));
    const isGit = basename(folder.path) === ".git" || isGitFolder((name) => names.has(name));
    let isKept = isGit;
    if (isGit) {
      this.gitFolders.push(folder);
      for (const name of gitControls)
        if (!names.has(name)) this.unmountable.push({ folder, name, target: null });
    }
    for (const child of children) if (await this.#child(folder, child, isGit)) isKept = true;
    return isKept;
  }

  /** Protects or searches an entry of a folder. Returns whether the folder must be mounted. */
  async #child(folder: OpenEntry, child: Dirent, isGit: boolean): Promise<boolean> {
    const { name } = child;
    const isGitName = plainName(name) === ".git";
    const isControl =
      isControlName(name, basename(folder.path)) ||
      (isGit && (gitControls as readonly string[]).includes(name)) ||
      (isGitName && !child.isDirectory()) ||
      (this.#also.paths.size > 0 && this.#also.paths.has(join(folder.path, name))) ||
      this.#isAlias(folder, child);
    if (!isControl) return child.isDirectory() && !isSkipped(name, isGit) && this.#subfolder(folder, name);
    this.found.push(join(folder.path, name));
    if (child.isSymbolicLink()) {
      this.unmountable.push({ folder, name, target: readlinkSync(at(folder, name)) });
      return true;
    }
    return this.#keep(folder, name, "read") !== undefined;
  }

  async #subfolder(folder: OpenEntry, name: string): Promise<boolean> {
    const entry = this.#keep(folder, name, "write");
    if (entry === undefined) return false;
    if (await this.#folder(entry)) return true;
    // Nothing below the folder was kept, so it is the last entry.
    this.entries.pop();
    closeSync(entry.fd);
    return false;
  }

  /** Opens an entry and keeps it. Returns `undefined` if it was deleted in the meantime. */
  #keep(folder: OpenEntry, name: string, access: OpenEntry["access"]): OpenEntry | undefined {
    if (this.entries.length >= maxEntries)
      throw new Fault(
        "invalid_argument",
        `the workspace has more than ${maxEntries} control files and folders that contain them; use a smaller folder as root`,
      );
    try {
      const entry = {
        path: join(folder.path, name),
        fd: openSync(at(folder, name), O_PATH | constants.O_NOFOLLOW),
        access,
      };
      this.entries.push(entry);
      return entry;
    } catch (error) {
      if (codeOf(error) === "ENOENT") return undefined;
      throw error;
    }
  }

  #isAlias(folder: OpenEntry, child: Dirent): boolean {
    if (this.#also.inodes.size === 0 || !child.isFile()) return false;
    const stats = statOf(at(folder, child.name));
    return stats !== undefined && this.#also.inodes.has(inode(stats));
  }
}

/** Returns the path of a name in an open folder, for system calls. */
export function at({ fd }: OpenEntry, name: string): string {
  return `/proc/self/fd/${fd}/${name}`;
}

/** Returns the identity of a file. */
export function inode({ dev, ino }: Stats): string {
  return `${dev}:${ino}`;
}

/** Returns the state of a path without following a link, or `undefined` if nothing exists there. */
export function statOf(path: string): Stats | undefined {
  try {
    return lstatSync(path);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

function isSkipped(name: string, isGit: boolean): boolean {
  return name === skipped || (isGit && skippedInGit.includes(name));
}

/**
 * Returns the entries of a folder. Empty for an unreadable folder of another user, because a command cannot change
 * it either.
 */
function childrenOf({ fd, path }: OpenEntry): readonly Dirent[] {
  try {
    return readdirSync(`/proc/self/fd/${fd}`, { withFileTypes: true });
  } catch (error) {
    if (codeOf(error) === "ENOTDIR") return [];
    if (codeOf(error) !== "EACCES") throw error;
    if (fstatSync(fd).uid !== process.getuid?.()) return [];
    throw new Fault(
      "permission_denied",
      `${path} cannot be read, so its control files cannot be protected; make it readable`,
      { cause: error },
    );
  }
}
