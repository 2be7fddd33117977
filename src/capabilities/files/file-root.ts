import { constants, existsSync, type Stats } from "node:fs";
import { lstat, mkdir, open, readlink, realpath, type FileHandle } from "node:fs/promises";
import { isAbsolute, join, relative, resolve, sep } from "node:path";
import { Fault, type TaskFolder } from "../../kernel/index.ts";
import { isControlEntry } from "./control-files.ts";
import { isInside, isReferred } from "./control-references.ts";
import { codeOf } from "./error-code.ts";
import { OpenFolder } from "./open-folder.ts";

/** Options of `FileRoot`. */
export interface FileRootOptions {
  /**
   * Whether the root keeps folders open by descriptors while it uses them. Default: `true` if the system has
   * `/proc/self/fd`.
   */
  readonly isPinned?: boolean;
  /** Further folders to which paths may lead. They are named by absolute paths. Default: none. */
  readonly folders?: readonly string[];
  /** D1: the folder of the task that uses the root. Error messages name it. */
  readonly of?: TaskFolder;
}

/** A name in an open folder. A file with this name need not exist. */
export interface Place {
  readonly folder: OpenFolder;
  /** Name in the folder: one part of a path. */
  readonly name: string;
  /** Path relative to the root, with `/` as separator, for messages. Absolute in a further folder. */
  readonly shown: string;
}

/** Maximum number of links in one path, as in Linux. */
const maxLinks = 40;

/**
 * A folder, with further folders, to which the file tools are confined.
 *
 * - R1: no path leads outside the folders, whether by `..`, as an absolute path or through a link. Links to places
 *   inside are followed.
 * - R2: with pinned folders (Linux), R1 holds even while another process moves folders or replaces links: a path is
 *   walked part by part through open descriptors, and no part is looked up twice. On other systems the path is
 *   checked before and after its use, so a process that replaces a folder in between may succeed.
 * - R3: only regular files are opened, and opening never blocks, not even on a pipe.
 * - R4: a place for writing is never a control file (`control-files.ts`), by whatever path or link it is named.
 *
 * Hard links are treated as normal files. A process that may create hard links in the root decides which files they
 * expose for reading. Writing replaces a name and leaves the other names of a hard link unchanged.
 */
export class FileRoot {
  readonly #root: ConfinedFolder;
  readonly #folders: readonly ConfinedFolder[];
  readonly #isPinned: boolean;
  readonly #of: TaskFolder | undefined;

  constructor(root: string, options: FileRootOptions = {}) {
    const { isPinned = existsSync("/proc/self/fd"), folders = [], of } = options;
    this.#of = of;
    this.#root = new ConfinedFolder("root", root);
    this.#folders = folders.map((folder) => new ConfinedFolder("folder", folder));
    this.#isPinned = isPinned;
  }

  /**
   * D1: returns the root for a task that works in a folder: paths inside `folder.origin` are replaced by the same
   * paths inside `folder.path`. Further folders outside `folder.origin` do not change. Rejects with
   * `permission_denied` if the root is outside `folder.origin`, or a further folder contains one of the two
   * folders.
   */
  async in(folder: TaskFolder | null | undefined): Promise<FileRoot> {
    // A test that calls a tool by itself may give no folder.
    if (folder === null || folder === undefined) return this;
    const { origin, path: own } = folder;
    const root = await this.path();
    const here = (path: string): string => (isInside(path, own) ? path : join(own, relative(origin, path)));
    if (!isInside(root, origin) && !isInside(root, own))
      throw new Fault(
        "permission_denied",
        `the root ${root} of the tool is outside ${origin}, for which this task has the folder ${own}: use a root inside ${origin}`,
      );
    if (!existsSync(own))
      throw new Fault(
        "not_found",
        `the folder ${own} of this task was deleted; restore it with reeve worktrees restore ${folder.runId}/${folder.taskId}`,
      );
    if (!existsSync(here(root)))
      throw new Fault(
        "not_found",
        `${root} is not in the folder ${own} of this task, because it is ignored or was not committed`,
      );
    const folders: string[] = [];
    for (const each of await this.furtherPaths()) {
      if ([origin, own].some((kept) => each !== kept && isInside(kept, each)))
        throw new Fault(
          "permission_denied",
          `the further folder ${each} of the tool contains files from which this task is isolated: remove it from \`folders\``,
        );
      const inside = isInside(each, origin) || isInside(each, own);
      if (!inside) folders.push(each);
      else if (existsSync(here(each))) folders.push(here(each));
    }
    return new FileRoot(here(root), { folders, isPinned: this.#isPinned, of: folder });
  }

  /** Returns the real path of the root. Rejects with `not_found` if the folder does not exist. */
  path(): Promise<string> {
    return this.#root.path();
  }

  /** Returns the real paths of the further folders. Rejects with `not_found` if one does not exist. */
  furtherPaths(): Promise<readonly string[]> {
    return Promise.all(this.#folders.map((folder) => folder.path()));
  }

  /** Opens a regular file for reading. The caller must close the file and the folder. */
  async read(path: string): Promise<Place & { readonly file: FileHandle }> {
    const place = await this.place(path);
    try {
      const file = await openRegular(place, path, constants.O_RDONLY);
      await place.folder.verify();
      return { ...place, file };
    } catch (error) {
      await place.folder.close();
      throw fileFault(error, path);
    }
  }

  /**
   * Returns the place of a file, with links followed. The file need not exist. With `write`, a control file throws
   * `permission_denied` (R4). With `create`, missing folders are created after this check. The caller must close
   * the folder.
   */
  async place(path: string, options: Omit<WalkOptions, "last"> = {}): Promise<Place> {
    const { folder, name } = await this.#walk(path, { ...options, last: "name" });
    if (name === undefined) {
      await folder.close();
      throw new Fault("invalid_argument", `${path} is a folder: use the path of a file`);
    }
    return { folder, name, shown: await this.shown(join(folder.path, name)) };
  }

  /** Opens a folder. The caller must close it. */
  async folder(path: string): Promise<OpenFolder> {
    return (await this.#walk(path, { last: "folder" })).folder;
  }

  /**
   * Returns a path relative to the root, with `/` as separator. The root itself is `.`. A path in a further folder is
   * returned as it is.
   */
  async shown(path: string): Promise<string> {
    const root = await this.path();
    if (!isInside(path, root)) return path;
    return relative(root, path).split(sep).join("/") || ".";
  }

  async #walk(path: string, options: WalkOptions): Promise<{ folder: OpenFolder; name?: string }> {
    const { base, parts: todo } = await this.#parts(path);
    const stack = [await OpenFolder.open(base, base, this.#isPinned)];
    const top = (): OpenFolder => stack.at(-1) as OpenFolder;
    let links = 0;
    const follow = async (name: string): Promise<boolean> => {
      const target = await linkTarget(top().at(name));
      if (target === undefined) return false;
      if (++links > maxLinks) throw new Fault("invalid_argument", `${path} contains too many links`);
      if (isAbsolute(target)) {
        const next = await this.#parts(target);
        todo.unshift(...next.parts);
        while (stack.length > 0) await stack.pop()?.close();
        stack.push(await OpenFolder.open(next.base, next.base, this.#isPinned));
      } else todo.unshift(...split(target));
      return true;
    };
    try {
      for (let part = todo.shift(); part !== undefined; part = todo.shift()) {
        if (part === "..") {
          if (stack.length === 1) throw this.#outside(path);
          await stack.pop()?.close();
          continue;
        }
        const isLast = todo.length === 0 && options.last === "name";
        if (options.write === true) await this.#refuseControl(top(), part, { isFile: isLast, path });
        if (isLast) {
          if (await follow(part)) continue;
          const isOne = await isFolder(top().at(part));
          const folder = stack.pop() as OpenFolder;
          return isOne ? { folder } : { folder, name: part };
        } else if (
          !(await this.#enter(stack, [part, ...todo], { ...options, path })) &&
          !(await follow(part))
        )
          throw new Fault("invalid_argument", `${part} in ${path} is not a folder`);
      }
      return { folder: stack.pop() as OpenFolder };
    } catch (error) {
      throw fileFault(error, path);
    } finally {
      for (const folder of stack) await folder.close();
    }
  }

  /** R4: throws `permission_denied` if the entry is, or would become, a control file. */
  async #refuseControl(
    folder: OpenFolder,
    name: string,
    { isFile, path }: { readonly isFile: boolean; readonly path: string },
  ): Promise<void> {
    const parents = split(relative(await this.#baseOf(folder.path), folder.path));
    const has = (each: string): Promise<boolean> => exists(folder.at(each));
    if (await isControlEntry({ parents, name, isFile, has })) throw controlFile(path, [...parents, name]);
    if (isFile) await this.#refuseReferred(join(folder.path, name), path);
  }

  /** R4: throws `permission_denied` if a control file refers to the file. */
  async #refuseReferred(file: string, path: string): Promise<void> {
    if (await isReferred(await this.#baseOf(file), file))
      throw controlFile(path, split(await this.shown(file)));
  }

  /** R4: checks all parts below a folder that does not exist, before the first of them is created. */
  async #refuseBelow(
    folder: OpenFolder,
    [first = "", ...rest]: readonly string[],
    path: string,
  ): Promise<void> {
    const base = await this.#baseOf(folder.path);
    const parents = [...split(relative(base, folder.path)), first];
    for (const [index, name] of rest.entries()) {
      if (name === "..") throw new Fault("not_found", `${path} does not exist`, { details: { path } });
      const isFile = index === rest.length - 1;
      if (await isControlEntry({ parents, name, isFile, has: hasNothing }))
        throw controlFile(path, [...parents, name]);
      parents.push(name);
    }
    await this.#refuseReferred(join(base, ...parents), path);
  }

  /**
   * Opens a folder and pushes it to the stack; with `create`, a missing folder is created. Returns `false` if the part
   * is not a folder.
   */
  async #enter(
    stack: OpenFolder[],
    [part = "", ...rest]: readonly string[],
    { create = false, path }: WalkOptions & { readonly path: string },
  ): Promise<boolean> {
    const parent = stack.at(-1) as OpenFolder;
    const enter = async (): Promise<boolean> => {
      stack.push(await OpenFolder.open(parent.at(part), join(parent.path, part), this.#isPinned));
      return true;
    };
    try {
      return await enter();
    } catch (error) {
      const code = codeOf(error);
      if (code === "ENOTDIR" || code === "ELOOP") return false;
      if (code !== "ENOENT" || !create) throw error;
      await this.#refuseBelow(parent, [part, ...rest], path);
      await mkdir(parent.at(part)).catch(ignoreExisting);
      return await enter();
    }
  }

  /**
   * Splits a path that is relative to the root, or absolute and inside a folder, into its parts below that folder. The
   * root comes first, so that a further folder inside the root is a part of it.
   */
  async #parts(path: string): Promise<{ readonly base: string; readonly parts: string[] }> {
    if (path.includes("\0")) throw new Fault("invalid_argument", "invalid path: it contains a zero byte");
    if (!isAbsolute(path)) return { base: await this.path(), parts: split(path) };
    for (const folder of [this.#root, ...this.#folders]) {
      const base = await folder.path();
      for (const spelling of [base, folder.written])
        if (isInside(path, spelling)) return { base, parts: split(relative(spelling, path)) };
    }
    throw this.#outside(path);
  }

  #outside(path: string): Fault {
    const { origin, path: own } = this.#of ?? {};
    if (origin !== undefined && own !== undefined && isAbsolute(path) && isInside(path, origin))
      return new Fault(
        "permission_denied",
        `${path} is in ${origin}, from which this task is isolated: use ${relative(origin, path) || "."} in its folder ${own}`,
      );
    return new Fault("permission_denied", `${path} is outside the workspace: use a path inside it`);
  }

  /** Returns the real path of the folder that contains an opened path. */
  async #baseOf(path: string): Promise<string> {
    for (const folder of [this.#root, ...this.#folders])
      if (isInside(path, await folder.path())) return folder.path();
    throw this.#outside(path);
  }
}

/** A folder that paths do not leave. */
class ConfinedFolder {
  /** Absolute path, as the caller wrote it. */
  readonly written: string;
  readonly #what: "root" | "folder";
  #real: Promise<string> | undefined;

  constructor(what: "root" | "folder", path: string) {
    if (typeof path !== "string" || path === "" || path.includes("\0"))
      throw new Fault(
        "invalid_argument",
        `invalid ${what} ${JSON.stringify(path)}: expected the path of a folder`,
      );
    this.#what = what;
    this.written = resolve(path);
  }

  /** Returns the real path. Rejects with `not_found` if the folder does not exist. */
  path(): Promise<string> {
    this.#real ??= realpath(this.written).catch((cause: unknown) => {
      this.#real = undefined;
      throw new Fault(
        "not_found",
        `the ${this.#what} ${this.written} does not exist: create it, or use another folder`,
        { cause },
      );
    });
    return this.#real;
  }
}

/** Returns a sentence for the description of a tool. It lists the further folders to which its paths may lead. */
export function furtherFolders(folders: readonly string[] = []): string {
  return folders.length === 0 ? "" : ` Absolute paths in ${folders.join(", ")} are allowed, too.`;
}

/** How a file path is resolved part by part. */
interface WalkOptions {
  /** Whether control files throw, because the caller writes the file. Default: `false`. */
  readonly write?: boolean;
  /** Whether missing folders are created. Default: `false`. */
  readonly create?: boolean;
  /** Whether the last part of the path is a name that may not exist, or a folder to open. */
  readonly last: "name" | "folder";
}

const errorTexts: Readonly<
  Record<
    string,
    { readonly code: "not_found" | "permission_denied" | "invalid_argument"; readonly text: string }
  >
> = {
  ENOENT: { code: "not_found", text: "does not exist" },
  EACCES: { code: "permission_denied", text: "cannot be opened: the system denies access" },
  EPERM: { code: "permission_denied", text: "cannot be opened: the system denies access" },
  EROFS: { code: "permission_denied", text: "is on a read-only file system" },
  ELOOP: { code: "permission_denied", text: "became a link while it was opened" },
  ENXIO: { code: "invalid_argument", text: "is not a regular file" },
  EISDIR: { code: "invalid_argument", text: "is a folder" },
  ENAMETOOLONG: { code: "invalid_argument", text: "is too long for a path" },
};

/**
 * Converts a system error to a fault that names the path the caller used, without internal descriptor paths. Other
 * errors are returned unchanged.
 */
export function fileFault(error: unknown, path: string): unknown {
  const known = Fault.is(error) ? undefined : errorTexts[codeOf(error) ?? ""];
  return known === undefined ? error : new Fault(known.code, `${path} ${known.text}`, { details: { path } });
}

/** R3: opens a regular file without following a link and without blocking. */
export async function openRegular(place: Place, path: string, flags: number): Promise<FileHandle> {
  const { O_NOFOLLOW, O_NONBLOCK } = constants;
  // Windows has neither flag.
  const file = await open(place.folder.at(place.name), flags | (O_NOFOLLOW ?? 0) | (O_NONBLOCK ?? 0));
  if ((await file.stat()).isFile()) return file;
  await file.close();
  throw new Fault("invalid_argument", `${path} is not a regular file`);
}

function hasNothing(): Promise<boolean> {
  return Promise.resolve(false);
}

function controlFile(path: string, parts: readonly string[]): Fault {
  const shown = parts.join("/");
  return new Fault(
    "permission_denied",
    `${path} cannot be written: ${shown} is a control file, which other programs execute or obey; ask a person to change it`,
    { details: { path: shown } },
  );
}

function split(path: string): string[] {
  const parts = sep === "\\" ? path.split(/[\\/]/) : path.split("/");
  return parts.filter((part) => part !== "" && part !== ".");
}

/** Returns the target of a link, or `undefined` if the path is not a link or does not exist. */
async function linkTarget(at: string): Promise<string | undefined> {
  try {
    return await readlink(at);
  } catch (error) {
    const code = codeOf(error);
    // Windows reports UNKNOWN for a path that is not a link.
    if (code === "EINVAL" || code === "ENOENT" || code === "UNKNOWN") return undefined;
    throw error;
  }
}

async function isFolder(at: string): Promise<boolean> {
  return (await statOf(at))?.isDirectory() ?? false;
}

async function exists(at: string): Promise<boolean> {
  return (await statOf(at)) !== undefined;
}

/** Returns the state of a path without following a link, or `undefined` if nothing exists there. */
async function statOf(at: string): Promise<Stats | undefined> {
  try {
    return await lstat(at);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

function ignoreExisting(error: unknown): void {
  if (codeOf(error) !== "EEXIST") throw error;
}
