import { createHash } from "node:crypto";
import { lstat, readdir, readFile, readlink, realpath, stat } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { Fault } from "../../kernel/index.ts";
import { isAbsent, isBelow } from "../files/bounded-file.ts";
import { codeFile, lockedPackages, lockLines, scanReferences } from "./import-scan.ts";

/** Limits of what one decision of trust covers. */
const maxFiles = 10_000;
const maxBytes = 64 * 1024 * 1024;

/** Files of a project that decide what runs, beside the folder `.reeve`. */
const rootFiles = ["reeve.config.ts", "reeve.config.js", "reeve.config.mjs", ".mcp.json"];

/** Files of the store, which every run changes. They are data and are never loaded as code. */
const storeFile = /^reeve\.db(?:-wal|-shm|-journal|-workers)?$/u;

/**
 * Returns the hash of everything in a project that needs trust: the folder `.reeve`, `reeve.config.ts`, `.mcp.json`,
 * the files of the project to which they refer, and the packages that they import, by name, version and integrity.
 * Throws `too_large` if that is too much for a decision.
 */
export async function projectHash(project: string): Promise<string> {
  const digest = new ProjectDigest(project);
  for (const name of rootFiles) await digest.add(join(project, name));
  await digest.add(join(project, ".reeve"));
  return digest.hash();
}

/** Returns the hash of a module and of the files of its folder tree to which it refers. It changes when one of them does. */
export async function moduleHash(file: string, root: string): Promise<string> {
  const digest = new ProjectDigest(root);
  await digest.add(file);
  return digest.hash();
}

class ProjectDigest {
  readonly #root: string;
  readonly #lines = new Set<string>();
  readonly #seen = new Set<string>();
  readonly #packages = new Map<string, Set<string>>();
  #files = 0;
  #bytes = 0;

  constructor(root: string) {
    this.#root = root;
  }

  /** Adds a file or folder, if it exists, with everything to which its code refers. */
  async add(path: string): Promise<void> {
    const facts = await factsOf(path);
    if (facts === undefined) return;
    if (facts.isSymbolicLink()) await this.#addLink(path);
    else await this.#addReal(path, facts.isDirectory());
  }

  hash(): string {
    const packages = [...this.#packages].flatMap(([folder, names]) =>
      lockLines(names, lockedPackages(folder, this.#root)),
    );
    const hash = createHash("sha256");
    for (const line of [...this.#lines, ...packages].toSorted()) hash.update(`${line}\n`);
    return hash.digest("hex");
  }

  async #addLink(path: string): Promise<void> {
    this.#lines.add(`link ${this.#shown(path)} ${await readlink(path)}`);
    const target = await realpath(path).catch(() => undefined);
    // A link without a target, or to itself, cannot be loaded.
    if (target !== undefined) await this.#addReal(target, (await stat(target)).isDirectory());
  }

  async #addReal(path: string, isFolder: boolean): Promise<void> {
    // The set also ends cycles of links.
    if (this.#seen.has(path)) return;
    this.#seen.add(path);
    this.#count();
    if (isFolder) await this.#addFolder(path);
    else if ((await stat(path)).isFile()) await this.#addFile(path);
    else this.#lines.add(`other ${this.#shown(path)}`);
  }

  async #addFolder(folder: string): Promise<void> {
    const isOwn = folder === join(this.#root, ".reeve");
    this.#lines.add(`folder ${this.#shown(folder)}`);
    for (const name of (await readdir(folder)).toSorted())
      if (!(isOwn && storeFile.test(name)) && name !== ".git") await this.add(join(folder, name));
  }

  async #addFile(path: string): Promise<void> {
    const content = await this.#content(path);
    this.#lines.add(`file ${this.#shown(path)} ${createHash("sha256").update(content).digest("hex")}`);
    if (!codeFile.test(path) || path.includes("/node_modules/")) return;
    const { paths, packages, usesImports } = scanReferences(content.toString("utf8"), path);
    for (const each of paths) if (this.#isOwn(each)) await this.add(each);
    const folder = dirname(path);
    const names = this.#packages.get(folder) ?? new Set<string>();
    for (const name of packages) names.add(name);
    this.#packages.set(folder, names);
    if (usesImports) await this.#addImportMap(folder);
  }

  /** Adds the nearest `package.json` and the files that its field `imports` names. */
  async #addImportMap(folder: string): Promise<void> {
    for (let at = folder; isBelow(at, this.#root); at = dirname(at)) {
      const manifest = join(at, "package.json");
      if ((await factsOf(manifest)) === undefined) continue;
      await this.add(manifest);
      const { paths } = scanReferences((await this.#content(manifest)).toString("utf8"), manifest);
      for (const path of paths) if (path !== at && this.#isOwn(path)) await this.add(path);
      return;
    }
  }

  /** Whether a referenced path belongs to the project. A reference to the whole project would cover every change. */
  #isOwn(path: string): boolean {
    return path !== this.#root && isBelow(path, this.#root) && !path.includes("/node_modules/");
  }

  async #content(path: string): Promise<Buffer> {
    this.#bytes += (await stat(path)).size;
    if (this.#bytes > maxBytes) throw this.#tooLarge(`${maxBytes} bytes`);
    return readFile(path);
  }

  #count(): void {
    this.#files += 1;
    if (this.#files > maxFiles) throw this.#tooLarge(`${maxFiles} files`);
  }

  #tooLarge(limit: string): Fault {
    return new Fault(
      "too_large",
      `the project ${this.#root} cannot be trusted: .reeve and what it refers to are larger than ${limit}; remove files from .reeve`,
    );
  }

  #shown(path: string): string {
    return JSON.stringify(relative(this.#root, path));
  }
}

async function factsOf(path: string): Promise<Awaited<ReturnType<typeof lstat>> | undefined> {
  try {
    return await lstat(path);
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
}
