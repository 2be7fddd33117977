import { createHash } from "node:crypto";
import { readdir, readFile, realpath, stat } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";
import { Fault, type JsonObject } from "../../../kernel/index.ts";
import { isAbsent } from "../text/bounded-file.ts";

/** How much one decision of trust covers. */
export interface TrustLimits {
  /** Default: 50_000. */
  readonly maxFiles?: number;
  /** Default: 256 MiB. */
  readonly maxBytes?: number;
}

/** Files by their real path, each with the SHA-256 of its content, and what else a decision of trust depends on. */
export class Coverage {
  readonly #root: string;
  readonly #files = new Map<string, string>();
  readonly #lines = new Set<string>();
  readonly #packages = new Set<string>();
  readonly #maxFiles: number;
  readonly #maxBytes: number;
  #bytes = 0;

  constructor(root: string, { maxFiles = 50_000, maxBytes = 256 * 1024 * 1024 }: TrustLimits = {}) {
    this.#root = root;
    this.#maxFiles = maxFiles;
    this.#maxBytes = maxBytes;
  }

  /** The covered files by their real paths. */
  get files(): ReadonlyMap<string, string> {
    return this.#files;
  }

  /**
   * Adds all files of a package, because its code may compute which of them it loads, and all packages that it needs.
   * Packages that are not installed are left out: the hash changes when one of them appears.
   */
  async addPackage(folder: string): Promise<void> {
    const real = await realpath(folder);
    if (folder !== real) this.#lines.add(`link ${this.#shown(folder)} ${this.#shown(real)}`);
    if (this.#packages.has(real)) return;
    this.#packages.add(real);
    await this.addFolder(real);
    for (const name of await neededBy(real)) {
      const needed = name === "reeve" ? undefined : await findPackage(name, real);
      if (needed !== undefined) await this.addPackage(needed);
    }
  }

  hash(): string {
    const files = [...this.#files].map(([path, hash]) => `file ${this.#shown(path)} ${hash}`);
    const digest = createHash("sha256");
    for (const line of [...files, ...this.#lines].toSorted()) digest.update(`${line}\n`);
    return digest.digest("hex");
  }

  /** Adds the files below a folder. The packages in its folder `node_modules` are not part of it. */
  async addFolder(folder: string): Promise<void> {
    for (const entry of await readdir(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) {
        if (entry.name !== "node_modules" && entry.name !== ".git") await this.addFolder(path);
      } else if (entry.isFile()) await this.#addFile(path);
      else if (entry.isSymbolicLink()) await this.#addLink(path);
    }
  }

  /** A link to a folder is covered as a link only: Node loads a file below it under its real path, which is not covered. */
  async #addLink(path: string): Promise<void> {
    const target = await realpath(path).catch(() => undefined);
    this.#lines.add(`link ${this.#shown(path)} ${target === undefined ? "" : this.#shown(target)}`);
    if (target !== undefined && (await stat(target)).isFile()) await this.#addFile(target);
  }

  async #addFile(path: string): Promise<Buffer | undefined> {
    if (this.#files.has(path)) return undefined;
    const content = await readFile(path);
    this.#files.set(path, createHash("sha256").update(content).digest("hex"));
    this.#bytes += content.length;
    if (this.#files.size > this.#maxFiles) throw this.#tooLarge(`${this.#maxFiles} files`);
    if (this.#bytes > this.#maxBytes) throw this.#tooLarge(`${this.#maxBytes} bytes`);
    return content;
  }

  #tooLarge(limit: string): Fault {
    return new Fault(
      "too_large",
      `the project ${this.#root} cannot be trusted: its code is larger than ${limit}; remove packages that it imports`,
    );
  }

  #shown(path: string): string {
    return JSON.stringify(relative(this.#root, path));
  }
}

/** Returns the folder of a package as Node finds it: the nearest `node_modules/NAME` at or above a folder. */
export async function findPackage(name: string, from: string): Promise<string | undefined> {
  for (let at = from; ; at = dirname(at)) {
    const folder = join(at, "node_modules", name);
    if (!at.endsWith(`${sep}node_modules`) && (await isFolder(folder))) return folder;
    if (dirname(at) === at) return undefined;
  }
}

async function isFolder(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isDirectory() === true;
}

/** The names of the packages that a package may load. */
async function neededBy(folder: string): Promise<readonly string[]> {
  let manifest: JsonObject;
  try {
    manifest = JSON.parse(await readFile(join(folder, "package.json"), "utf8")) as JsonObject;
  } catch (error) {
    // Node uses a package without a valid manifest only by its index file, which is covered.
    if (isAbsent(error) || error instanceof SyntaxError) return [];
    throw error;
  }
  const fields = ["dependencies", "optionalDependencies", "peerDependencies"];
  return fields.flatMap((field) => Object.keys((manifest[field] ?? {}) as JsonObject));
}
