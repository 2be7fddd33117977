import { constants } from "node:fs";
import { lstat, open, realpath, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { Fault } from "../../kernel/index.ts";

/**
 * Folder in which Linux shows the open descriptors of a process as paths. A path through a descriptor cannot be
 * redirected.
 */
const descriptors = "/proc/self/fd";

/**
 * A folder that stays open while files in it are used.
 *
 * - Pinned (Linux): an open descriptor. Names are looked up in this folder, even if it is renamed or replaced by a
 *   link in this time.
 * - Not pinned: a path whose parts were all folders and not links when it was opened. `verify` checks the path
 *   again.
 */
export class OpenFolder {
  /** Real absolute path, for messages and for programs that start in the folder. */
  readonly path: string;
  readonly #handle: FileHandle | undefined;

  private constructor(path: string, handle: FileHandle | undefined) {
    this.path = path;
    this.#handle = handle;
  }

  /** Opens a folder. Throws ENOTDIR or ELOOP if the path is a link or not a folder. */
  static async open(at: string, path: string, isPinned: boolean): Promise<OpenFolder> {
    if (isPinned) {
      const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;
      return new OpenFolder(path, await open(at, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    }
    if (!(await lstat(at)).isDirectory())
      throw Object.assign(new Error(`${at} is not a folder`), { code: "ENOTDIR" });
    return new OpenFolder(path, undefined);
  }

  /** Path of the folder for system calls. */
  get here(): string {
    return this.#handle === undefined ? this.path : `${descriptors}/${this.#handle.fd}`;
  }

  /** Returns the path of a name in the folder, for system calls. `name` is one part of a path, neither `.` nor `..`. */
  at(name: string): string {
    return join(this.here, name);
  }

  /** Throws if the path has been moved or replaced. A pinned folder needs no check. */
  async verify(): Promise<void> {
    if (this.#handle !== undefined || (await realpath(this.path)) === this.path) return;
    throw new Fault("permission_denied", `${this.path} was moved while it was used: try again`);
  }

  /** Releases the folder. */
  async close(): Promise<void> {
    await this.#handle?.close();
  }
}
