import { constants } from "node:fs";
import { lstat, open, realpath, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { Fault } from "../../kernel/index.ts";

/** Where the system shows a process its open descriptors as paths, a path through one cannot be led elsewhere. */
const descriptors = "/proc/self/fd";

/**
 * A folder that is held while something in it is used.
 *
 * - Pinned (Linux): it is an open descriptor, and names are looked up in that very folder, whatever is renamed or linked meanwhile.
 * - Not pinned: it is a path whose every part was a folder and no link when it was looked at; `verify` looks again.
 */
export class OpenFolder {
  /** Real, absolute: for showing, and for programs started in it. */
  readonly path: string;
  readonly #handle: FileHandle | undefined;

  private constructor(path: string, handle: FileHandle | undefined) {
    this.path = path;
    this.#handle = handle;
  }

  /** Throws ENOTDIR or ELOOP for what is a link, or no folder. */
  static async open(at: string, path: string, isPinned: boolean): Promise<OpenFolder> {
    if (isPinned) {
      const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;
      return new OpenFolder(path, await open(at, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    }
    if (!(await lstat(at)).isDirectory())
      throw Object.assign(new Error(`${at} is no folder`), { code: "ENOTDIR" });
    return new OpenFolder(path, undefined);
  }

  /** The folder itself, as a path to hand to the system. */
  get here(): string {
    return this.#handle === undefined ? this.path : `${descriptors}/${this.#handle.fd}`;
  }

  /** Something in it, as a path to hand to the system; `name` is one part and neither `.` nor `..`. */
  at(name: string): string {
    return join(this.here, name);
  }

  /** Throws when the path has become another one. Nothing to do where it is pinned. */
  async verify(): Promise<void> {
    if (this.#handle !== undefined || (await realpath(this.path)) === this.path) return;
    throw new Fault("permission_denied", `${this.path} was moved while it was used`);
  }

  async close(): Promise<void> {
    await this.#handle?.close();
  }
}
