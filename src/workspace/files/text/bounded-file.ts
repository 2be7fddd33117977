import { constants } from "node:fs";
import { open, readdir, realpath, stat } from "node:fs/promises";
import { join, relative, isAbsolute, sep } from "node:path";
import { Fault } from "../../../kernel/index.ts";
import type { Notices } from "../notices.ts";

/** A text file as it was read. */
export interface TextFile {
  /** Path under which the file was found. */
  readonly path: string;
  /** Text of the file, without a byte order mark and with `\n` as line end. */
  readonly text: string;
  /** Size of the whole file in bytes. */
  readonly bytes: number;
  /** Whether the text is only the beginning of the file. */
  readonly isCut: boolean;
}

/** How a file is read. */
export interface ReadOptions {
  /** Maximum number of bytes that are read. */
  readonly maxBytes: number;
  /**
   * Folder in which the file must be after all links are followed. If absent, links may lead anywhere. It is needed
   * for files of a project: a link to a private key of the user would otherwise send that key to a model.
   */
  readonly within?: string;
}

/** Reads the files of a workspace with limits. A file that cannot be used gives a notice and counts as absent. */
export class FileReader {
  readonly #notices: Notices;

  constructor(notices: Notices) {
    this.#notices = notices;
  }

  /**
   * Whether a path is a regular file that may be used. A link that leads outside `within`, or to itself, gives a
   * notice.
   */
  async isUsable(path: string, { within }: Pick<ReadOptions, "within"> = {}): Promise<boolean> {
    try {
      if (within !== undefined && !(await isInside(path, within))) throw outside(within);
      return (await stat(path)).isFile();
    } catch (error) {
      if (!isAbsent(error)) this.#notices.add("skipped", path, problemOf(error));
      return false;
    }
  }

  /** Returns the file, or `undefined` if it does not exist or cannot be used. */
  async read(path: string, options: ReadOptions): Promise<TextFile | undefined> {
    try {
      return await readTextFile(path, options);
    } catch (error) {
      this.#notices.add("skipped", path, problemOf(error));
      return undefined;
    }
  }

  /**
   * Returns the names in a folder in a fixed order. The list is empty if the folder does not exist, and has at most
   * 1,000 names.
   */
  async list(folder: string, { within }: Pick<ReadOptions, "within"> = {}): Promise<readonly string[]> {
    try {
      if (within !== undefined && !(await isInside(folder, within))) throw outside(within);
      const names = (await readdir(folder)).toSorted();
      if (names.length > maxNames)
        this.#notices.add(
          "cut",
          folder,
          `it has ${names.length} entries; only the first ${maxNames} are used`,
        );
      return names.slice(0, maxNames);
    } catch (error) {
      if (!isAbsent(error)) this.#notices.add("skipped", folder, problemOf(error));
      return [];
    }
  }
}

const maxNames = 1_000;

/**
 * Reads a regular file without blocking on a pipe. Returns `undefined` if it does not exist. Throws a fault or system
 * error if it is not a regular file, leads outside `within`, or is a cyclic link.
 */
export async function readTextFile(
  path: string,
  { maxBytes, within }: ReadOptions,
): Promise<TextFile | undefined> {
  try {
    if (within !== undefined && !(await isInside(path, within))) throw outside(within);
    const file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    try {
      const facts = await file.stat();
      if (!facts.isFile()) throw new Fault("invalid_argument", "it is not a regular file");
      const buffer = Buffer.alloc(Math.min(facts.size, maxBytes));
      const length = await readFully(file, buffer);
      const isCut = facts.size > maxBytes;
      return { path, text: decoded(buffer.subarray(0, length), isCut), bytes: facts.size, isCut };
    } finally {
      await file.close();
    }
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
}

/**
 * Reads a file like `readTextFile`. If the file cannot be used, throws `invalid_argument` with the kind of file,
 * its path and the problem.
 */
export async function readNamedFile(
  what: string,
  path: string,
  options: ReadOptions,
): Promise<TextFile | undefined> {
  try {
    return await readTextFile(path, options);
  } catch (error) {
    throw new Fault("invalid_argument", `invalid ${what} ${path}: ${problemOf(error)}`, { cause: error });
  }
}

async function readFully(file: Awaited<ReturnType<typeof open>>, buffer: Buffer): Promise<number> {
  let length = 0;
  while (length < buffer.length) {
    const { bytesRead } = await file.read(buffer, length, buffer.length - length, length);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return length;
}

/** Decodes UTF-8 and removes a byte order mark. With `isCut` it also removes an incomplete character at the end. */
function decoded(bytes: Uint8Array, isCut: boolean): string {
  return new TextDecoder("utf-8").decode(bytes, { stream: isCut }).replaceAll(/\r\n?/gu, "\n");
}

/** Whether a path, with all links followed, is in a folder or is the folder itself. */
async function isInside(path: string, folder: string): Promise<boolean> {
  return isBelow(await realpath(path), await realpath(folder));
}

/** Whether an absolute path is in a folder or is the folder itself, without following links. */
export function isBelow(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

/** Whether the path is a folder, with links followed. */
export async function isFolder(path: string): Promise<boolean> {
  return (await kindOf(path)) === "folder";
}

/** Whether the path is a regular file, with links followed. */
export async function isRegularFile(path: string): Promise<boolean> {
  return (await kindOf(path)) === "file";
}

async function kindOf(path: string): Promise<"file" | "folder" | undefined> {
  try {
    const facts = await stat(path);
    if (facts.isDirectory()) return "folder";
    return facts.isFile() ? "file" : undefined;
  } catch {
    // A path that cannot be examined cannot be used either: absent, a cyclic link, or no permission.
    return undefined;
  }
}

function outside(within: string): Fault {
  return new Fault("permission_denied", `it leads outside ${within}; replace the link by a file`);
}

export function problemOf(error: unknown): string {
  if (Fault.is(error)) return error.message;
  const { code, message } = error as NodeJS.ErrnoException;
  return (code === undefined ? undefined : errorTexts[code]) ?? `it cannot be read: ${message}`;
}

const errorTexts: Readonly<Record<string, string>> = {
  EACCES: "it cannot be read: the system denies access",
  EPERM: "it cannot be read: the system denies access",
  ELOOP: "it is a link that leads to itself; replace the link by a file",
  EISDIR: "it is a folder; a file is expected",
  ENXIO: "it is not a regular file",
};

/** Whether an error says that the path does not exist. */
export function isAbsent(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === "ENOENT" || code === "ENOTDIR";
}

/** Returns the path of an entry, or throws `invalid_argument` if the name is not a single part of a path. */
export function entryOf(folder: string, name: string, what: string): string {
  if (/^[a-z0-9][a-z0-9_.-]{0,63}$/iu.test(name) && !name.includes("..")) return join(folder, name);
  throw new Fault(
    "invalid_argument",
    `invalid ${what} ${JSON.stringify(name)}: expected 1 to 64 letters, digits, _, - or ., starting with a letter or digit, without ..`,
  );
}
