import { constants, existsSync } from "node:fs";
import { lstat, mkdir, open, readlink, realpath, type FileHandle } from "node:fs/promises";
import { isAbsolute, join, relative, resolve, sep } from "node:path";
import { Fault } from "../../kernel/index.ts";
import { OpenFolder } from "./open-folder.ts";

export interface FileRootOptions {
  /** Whether folders are held by descriptors; where the system can, unless told. */
  readonly isPinned?: boolean;
}

/** A name in a folder that is held. Nothing is said of what is there. */
export interface Place {
  readonly folder: OpenFolder;
  readonly name: string;
  /** From the root, with `/`: what is shown. */
  readonly shown: string;
}

/** As many links in one path as Linux follows. */
const mostLinks = 40;

/**
 * A folder that file tools stay in.
 *
 * - R1 No path leads out: not by `..`, not absolute, not by a link. Links to places inside are followed.
 * - R2 Where folders are pinned (Linux), this holds also while another process moves folders and swaps links: a path is walked part by part
 *   through open descriptors, and no part is looked up twice. Elsewhere what is used is checked before and after; a process that swaps
 *   a folder in between may win.
 * - R3 Only regular files are opened; opening never waits (a pipe).
 *
 * Hard links are files like any other: who may make them in the root decides what they show.
 */
export class FileRoot {
  readonly #given: string;
  readonly #isPinned: boolean;
  #real: Promise<string> | undefined;

  constructor(root: string, { isPinned = existsSync("/proc/self/fd") }: FileRootOptions = {}) {
    if (typeof root !== "string" || root === "" || root.includes("\0"))
      throw new Fault("invalid_argument", "root must be the path of a folder");
    this.#given = resolve(root);
    this.#isPinned = isPinned;
  }

  /** Its real path. */
  path(): Promise<string> {
    this.#real ??= realpath(this.#given).catch((cause: unknown) => {
      this.#real = undefined;
      throw new Fault("not_found", `the root ${this.#given} is not there: make it, or name another`, {
        cause,
      });
    });
    return this.#real;
  }

  /** Opens a regular file to read. Close both. */
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

  /** Where a file is or would be, links followed; with `create`, folders on the way are made. Close the folder. */
  async place(path: string, options: { readonly create?: boolean } = {}): Promise<Place> {
    const { folder, name } = await this.#walk(path, { ...options, last: "name" });
    if (name === undefined) {
      await folder.close();
      throw new Fault("invalid_argument", `${path} is a folder: name a file`);
    }
    return { folder, name, shown: await this.shown(join(folder.path, name)) };
  }

  /** Opens a folder. Close it. */
  async folder(path: string): Promise<OpenFolder> {
    return (await this.#walk(path, { last: "folder" })).folder;
  }

  /** A path from the root, with `/`; `.` for the root itself. */
  async shown(path: string): Promise<string> {
    return (
      relative(await this.path(), path)
        .split(sep)
        .join("/") || "."
    );
  }

  async #walk(path: string, options: WalkOptions): Promise<{ folder: OpenFolder; name?: string }> {
    const root = await this.path();
    const todo = await this.#parts(path);
    const stack = [await OpenFolder.open(root, root, this.#isPinned)];
    const top = (): OpenFolder => stack.at(-1) as OpenFolder;
    let links = 0;
    const follow = async (name: string): Promise<boolean> => {
      const target = await linkTarget(top().at(name));
      if (target === undefined) return false;
      if (++links > mostLinks) throw new Fault("invalid_argument", `${path} leads through too many links`);
      if (isAbsolute(target)) {
        todo.unshift(...(await this.#parts(target)));
        while (stack.length > 1) await stack.pop()?.close();
      } else todo.unshift(...split(target));
      return true;
    };
    try {
      for (let part = todo.shift(); part !== undefined; part = todo.shift()) {
        if (part === "..") {
          if (stack.length === 1) throw outside(path);
          await stack.pop()?.close();
        } else if (todo.length === 0 && options.last === "name") {
          if (await follow(part)) continue;
          const isOne = await isFolder(top().at(part));
          const folder = stack.pop() as OpenFolder;
          return isOne ? { folder } : { folder, name: part };
        } else if (!(await this.#enter(stack, part, options)) && !(await follow(part)))
          throw new Fault("invalid_argument", `${part} in ${path} is no folder`);
      }
      return { folder: stack.pop() as OpenFolder };
    } catch (error) {
      throw fileFault(error, path);
    } finally {
      for (const folder of stack) await folder.close();
    }
  }

  /** Whether it is a folder; one that is missing is made when asked to. */
  async #enter(stack: OpenFolder[], part: string, { create = false }: WalkOptions): Promise<boolean> {
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
      await mkdir(parent.at(part)).catch(unlessThere);
      return await enter();
    }
  }

  /** Of a path from the root, or an absolute one inside it. */
  async #parts(path: string): Promise<string[]> {
    if (path.includes("\0")) throw new Fault("invalid_argument", "a path may not hold a zero byte");
    if (!isAbsolute(path)) return split(path);
    for (const root of [await this.path(), this.#given]) {
      const inside = relative(root, path);
      if (inside !== ".." && !inside.startsWith(`..${sep}`) && !isAbsolute(inside)) return split(inside);
    }
    throw outside(path);
  }
}

interface WalkOptions {
  readonly create?: boolean;
  readonly last: "name" | "folder";
}

const errorWords: Readonly<
  Record<
    string,
    { readonly code: "not_found" | "permission_denied" | "invalid_argument"; readonly words: string }
  >
> = {
  ENOENT: { code: "not_found", words: "is not there" },
  EACCES: { code: "permission_denied", words: "may not be opened: the system forbids it" },
  EPERM: { code: "permission_denied", words: "may not be opened: the system forbids it" },
  EROFS: { code: "permission_denied", words: "is on a file system that is read-only" },
  ELOOP: { code: "permission_denied", words: "became a link while it was opened" },
  ENXIO: { code: "invalid_argument", words: "is no regular file" },
  EISDIR: { code: "invalid_argument", words: "is a folder" },
  ENAMETOOLONG: { code: "invalid_argument", words: "is too long for a path" },
};

/** The system's errors in words, without the paths that were made up to be safe. */
export function fileFault(error: unknown, path: string): unknown {
  const said = Fault.is(error) ? undefined : errorWords[codeOf(error) ?? ""];
  return said === undefined ? error : new Fault(said.code, `${path} ${said.words}`, { details: { path } });
}

/** R3. */
export async function openRegular(place: Place, path: string, flags: number): Promise<FileHandle> {
  const { O_NOFOLLOW, O_NONBLOCK } = constants;
  // Windows knows neither.
  const file = await open(place.folder.at(place.name), flags | (O_NOFOLLOW ?? 0) | (O_NONBLOCK ?? 0));
  if ((await file.stat()).isFile()) return file;
  await file.close();
  throw new Fault("invalid_argument", `${path} is no regular file`);
}

function outside(path: string): Fault {
  return new Fault("permission_denied", `${path} lies outside the workspace: use a path inside it`);
}

function split(path: string): string[] {
  const parts = sep === "\\" ? path.split(/[\\/]/) : path.split("/");
  return parts.filter((part) => part !== "" && part !== ".");
}

/** `undefined`: it is no link, or is not there. */
async function linkTarget(at: string): Promise<string | undefined> {
  try {
    return await readlink(at);
  } catch (error) {
    const code = codeOf(error);
    // Windows says UNKNOWN of what is no link.
    if (code === "EINVAL" || code === "ENOENT" || code === "UNKNOWN") return undefined;
    throw error;
  }
}

async function isFolder(at: string): Promise<boolean> {
  try {
    return (await lstat(at)).isDirectory();
  } catch (error) {
    if (codeOf(error) === "ENOENT") return false;
    throw error;
  }
}

function unlessThere(error: unknown): void {
  if (codeOf(error) !== "EEXIST") throw error;
}

export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}
