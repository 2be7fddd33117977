import { createHash } from "node:crypto";
import { lstat, readdir, readFile, readlink, realpath, stat } from "node:fs/promises";
import { basename, dirname, join, relative, resolve } from "node:path";
import { Fault } from "../../../kernel/index.ts";
import { isAbsent, isBelow } from "../text/bounded-file.ts";
import { codeEndings, codeFile, lockedPackages, lockLines, scanReferences, textsIn } from "./import-scan.ts";

/** How much one decision of trust covers. */
interface TrustLimits {
  /** Default: 10_000. */
  readonly maxFiles?: number;
  /** Default: 64 MiB. */
  readonly maxBytes?: number;
}

/** What decides what runs in a project, beside the folder `.reeve`. */
const rootFiles = [...codeEndings.map((ending) => `reeve.config${ending}`), ".mcp.json"];

/** Parts of the folder `.reeve` that are texts. Those with an effect have a hash of their own. */
const textPart = /^(?:prompts|knowledge|skills|SYSTEM\.md|agents\/[^/]*\.md)$/u;

/** Files whose texts name extensions and the programs of MCP servers. */
const namingFiles = ["settings.json", "mcp.json", ".mcp.json"];

/** Files that an interpreter runs. Files with permission to be executed count as well. */
const program = /\.(?:[cm]?[jt]sx?|sh|bash|zsh|py|rb|pl|php)$/u;

/** Files of the store, which every run changes. They are data and are never loaded as code. */
const storeFile = /^reeve\.db(?:-wal|-shm|-journal|-workers|-new-[\w-]+)?$/u;

/**
 * Returns the hash of the code of a project: the folder `.reeve` without its texts, `reeve.config.ts`, `.mcp.json`, the
 * files of the project to which they refer, and the packages that they import, by name, version and integrity.
 * Throws `too_large` if that is too much for a decision.
 */
export async function projectHash(project: string, limits: TrustLimits = {}): Promise<string> {
  const digest = new ProjectDigest(project, limits);
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
  readonly #maxFiles: number;
  readonly #maxBytes: number;
  #files = 0;
  #bytes = 0;

  constructor(root: string, { maxFiles = 10_000, maxBytes = 64 * 1024 * 1024 }: TrustLimits = {}) {
    this.#root = root;
    this.#maxFiles = maxFiles;
    this.#maxBytes = maxBytes;
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
    const own = join(this.#root, ".reeve");
    for (const name of (await readdir(folder)).toSorted()) {
      const path = join(folder, name);
      const isData = (folder === own && storeFile.test(name)) || textPart.test(relative(own, path));
      if (!isData && name !== ".git") await this.add(path);
    }
  }

  async #addFile(path: string): Promise<void> {
    const content = await this.#content(path);
    this.#lines.add(`file ${this.#shown(path)} ${createHash("sha256").update(content).digest("hex")}`);
    if (namingFiles.includes(basename(path))) await this.#addNamed(path, content.toString("utf8"));
    if (!codeFile.test(path) || path.includes("/node_modules/")) return;
    const { paths, packages, usesImports } = scanReferences(content.toString("utf8"), path);
    for (const each of paths) if (this.#isOwn(each)) await this.add(each);
    const folder = dirname(path);
    const names = this.#packages.get(folder) ?? new Set<string>();
    for (const name of packages) names.add(name);
    this.#packages.set(folder, names);
    for (const name of packages) await this.#addLinkedPackage(name, folder);
    if (usesImports) await this.#addImportMap(folder);
  }

  /** Adds the programs and modules that the texts of a JSON file name, relative to its folder. */
  async #addNamed(file: string, json: string): Promise<void> {
    for (const text of textsIn(json)) {
      const path = resolve(dirname(file), text);
      for (const each of [path, ...codeEndings.map((ending) => join(path, `index${ending}`))])
        if (this.#isOwn(each) && (await isProgram(each))) await this.add(each);
    }
  }

  /** Adds a package that is a link to a folder of the project. A lock file records no integrity of it. */
  async #addLinkedPackage(name: string, folder: string): Promise<void> {
    for (let at = folder; isBelow(at, this.#root); at = dirname(at)) {
      const path = join(at, "node_modules", name);
      const facts = await factsOf(path);
      if (facts === undefined) continue;
      const target = facts.isSymbolicLink() ? await realpath(path).catch(() => undefined) : undefined;
      if (target === undefined || !this.#isOwn(target)) return;
      const manifest = join(target, "package.json");
      if ((await factsOf(manifest)) === undefined) return;
      await this.add(manifest);
      await this.#addNamed(manifest, (await this.#content(manifest)).toString("utf8"));
      await this.add(join(target, "index.js"));
      return;
    }
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
    if (this.#bytes > this.#maxBytes) throw this.#tooLarge(`${this.#maxBytes} bytes`);
    return readFile(path);
  }

  #count(): void {
    this.#files += 1;
    if (this.#files > this.#maxFiles) throw this.#tooLarge(`${this.#maxFiles} files`);
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

/** Whether a path is a file that can be run or imported. */
async function isProgram(path: string): Promise<boolean> {
  const facts = await stat(path).catch(() => undefined);
  return facts?.isFile() === true && (program.test(path) || (facts.mode & 0o111) !== 0);
}

async function factsOf(path: string): Promise<Awaited<ReturnType<typeof lstat>> | undefined> {
  try {
    return await lstat(path);
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
}
