import { hash as hashOf } from "node:crypto";
import { readdir, readFile, realpath, stat } from "node:fs/promises";
import { isBuiltin } from "node:module";
import { dirname, extname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { Fault, type JsonObject } from "../../../kernel/index.ts";
import { isAbsent, isBelow } from "../text/bounded-file.ts";
import {
  computesNames,
  languageOfFile,
  literalsIn,
  pythonImports,
  runsOf,
  type Language,
  type Runs,
} from "./code-texts.ts";

/** Options of a coverage, which is the set of files that run for some code. */
export interface CoverageOptions {
  /** Default: 50_000. */
  readonly maxFiles?: number;
  /** Default: 256 MiB. */
  readonly maxBytes?: number;
  /** Whether packages in `node_modules` are included. Default: `true`. */
  readonly packages?: boolean;
}

/** Number of parts that a decision keeps. */
const mostParts = 500;

/** Matches file extensions of data, which no program runs. */
const data = /\.(?:db|sqlite3?|csv|tsv|log|md|txt|pdf|png|jpe?g|gif|webp|svg|lock)$/iu;

/**
 * Matches file extensions of programs that an interpreter runs. Files that have permission to be executed count as
 * programs too.
 */
const program = /\.(?:[cm]?[jt]sx?|sh|bash|zsh|ksh|pyw?|rb|pl|php|lua|wasm|node|so|jar)$/iu;

/** Matches extensions of files that Python imports, including compiled ones. */
const importable = /\.(?:pyw?|pyc|pyo|so|pyd|dylib|dll)$/iu;

/** Endings that Node tries for a module. */
const tried = ["", ".js", ".json", ".node", ".cjs", ".mjs", ".ts", ".mts", ".cts"];

/**
 * Collects the files that really run for some code, by their real paths with the SHA-256 of their content. It
 * searches them as Node and other interpreters do. Every literal text of the code may name a file, so that the set
 * may contain too many files, but misses none. Code that cannot be found is reported in `unresolved`.
 */
export class Coverage {
  readonly root: string;
  readonly #files = new Map<string, string>();
  /** Other facts that are part of the hash: links, and names that are looked up in other places. */
  readonly #lines = new Set<string>();
  readonly #searched = new Map<string, Runs>();
  readonly #packages = new Set<string>();
  readonly #importable = new Set<string>();
  readonly #found = new Map<string, Promise<string | undefined>>();
  readonly #unresolved = new Set<string>();
  readonly #fetched = new Set<string>();
  readonly #maxFiles: number;
  readonly #maxBytes: number;
  readonly #hasPackages: boolean;
  #bytes = 0;

  constructor(
    root: string,
    { maxFiles = 50_000, maxBytes = 256 * 1024 * 1024, packages = true }: CoverageOptions = {},
  ) {
    this.root = root;
    this.#maxFiles = maxFiles;
    this.#maxBytes = maxBytes;
    this.#hasPackages = packages;
  }

  /** The covered files by their real paths. */
  get files(): ReadonlyMap<string, string> {
    return this.#files;
  }

  /** Returns for a person why the texts of the code do not say which code runs. */
  get unresolved(): readonly string[] {
    return [...this.#unresolved].toSorted();
  }

  /** Returns for a person which code would be fetched because it is not on this machine yet. */
  get fetched(): readonly string[] {
    return [...this.#fetched].toSorted();
  }

  addUnresolved(reason: string): void {
    this.#unresolved.add(reason);
  }

  addFetched(reason: string): void {
    this.#fetched.add(reason);
  }

  hash(): string {
    const lines = [
      ...[...this.#files].map(([path, hash]) => `file ${this.shown(path)} ${hash}`),
      ...this.#lines,
      ...[...this.#unresolved].map((reason) => `unresolved ${reason}`),
      ...[...this.#fetched].map((reason) => `fetched ${reason}`),
    ];
    return contentHash(
      lines
        .toSorted()
        .map((line) => `${line}\n`)
        .join(""),
    );
  }

  /**
   * Returns short hashes of the covered files, and of packages as a whole, by paths below the root. They only help
   * a person to find a change, so that at most 500 are returned.
   */
  parts(): Readonly<Record<string, string>> {
    const parts = new Map<string, string[]>();
    for (const [path, hash] of this.#files) {
      const shown = relative(this.root, path);
      const name = /^(?:.*?\/)?node_modules\/(?:@[^/]+\/)?[^/]+/u.exec(shown)?.[0] ?? shown;
      const lines = parts.get(name) ?? [];
      lines.push(`${shown} ${hash}`);
      parts.set(name, lines);
    }
    const entries = [...parts].slice(0, mostParts).map(([name, lines]): [string, string] => {
      return [name, contentHash(lines.toSorted().join("\n")).slice(0, 16)];
    });
    return Object.fromEntries(entries);
  }

  /** A path for a person and for the hash. */
  shown(path: string): string {
    return JSON.stringify(relative(this.root, path));
  }

  /** Adds a file with all code that it loads. A file that does not exist, or a link without a target, adds nothing. */
  async addFile(path: string, runs: Runs = "inside"): Promise<void> {
    const real = await realpath(path).catch(() => undefined);
    if (real === undefined || (await kindOf(real)) !== "file") return;
    if (real !== path) this.#lines.add(`link ${this.shown(path)} ${this.shown(real)}`);
    const own = await packageAround(real);
    if (own === undefined) await this.#search(real, runs);
    else if (this.#hasPackages) await this.addPackage(own, runs);
  }

  /** Adds a file of settings with the files and packages that its texts name. */
  async addNaming(path: string): Promise<void> {
    if ((await kindOf(path)) !== "file") return;
    await this.addFile(path);
    for (const text of literalsIn((await this.#read(await realpath(path))).toString("utf8")))
      await this.addReference(text, dirname(path), "outside");
  }

  /**
   * Adds the files that the name of a module may mean, as Node looks for them: a file, or a folder with a main
   * file.
   */
  async addModule(base: string, runs: Runs): Promise<void> {
    for (const ending of tried) await this.addFile(base + ending, runs);
    if ((await kindOf(base)) !== "folder") return;
    for (const ending of tried.slice(1)) await this.addFile(join(base, `index${ending}`), runs);
    await this.#addMain(base, runs);
  }

  /**
   * Adds the files that the field `main` of a `package.json` may mean. It can also name a folder, or a file outside
   * of this folder.
   */
  async #addMain(folder: string, runs: Runs): Promise<void> {
    const { main } = await manifestOf(folder);
    if (typeof main !== "string") return;
    const base = join(folder, main);
    for (const ending of tried) {
      await this.addFile(base + ending, runs);
      await this.addFile(join(base, `index${ending}`), runs);
    }
  }

  /**
   * Adds all files of a package, because its code may compute which of them it loads, and all packages that it
   * needs. Packages that are not installed are left out; if one is installed later, the hash changes.
   */
  async addPackage(folder: string, runs: Runs = "inside"): Promise<void> {
    const real = await realpath(folder);
    if (folder !== real) this.#lines.add(`link ${this.shown(folder)} ${this.shown(real)}`);
    const key = `${runs} ${real}`;
    if (this.#packages.has(key)) return;
    this.#packages.add(key);
    // A package that contains the project would cover every change of it.
    if (isBelow(this.root, real)) await this.addModule(real, runs);
    else await this.addFolder(real);
    await this.#addMain(real, runs);
    const manifest = await manifestOf(real);
    for (const field of ["dependencies", "optionalDependencies", "peerDependencies"])
      for (const name of Object.keys((manifest[field] ?? {}) as JsonObject))
        await this.#addNamedPackage(name, real, runs);
  }

  /** Adds the files below a folder, except the packages in its folder `node_modules`. */
  async addFolder(folder: string): Promise<void> {
    const entries = await readdir(folder, { withFileTypes: true });
    await Promise.all(entries.map(async (entry) => entry.isFile() && this.#read(join(folder, entry.name))));
    for (const entry of entries) {
      const path = join(folder, entry.name);
      if (entry.isDirectory() && entry.name !== "node_modules" && entry.name !== ".git")
        await this.addFolder(path);
      else if (entry.isSymbolicLink()) await this.#addLink(path);
    }
  }

  /**
   * Adds all files below a folder that Python can import, because a new file there can replace a module of Python's
   * library. Folders whose name cannot be imported, packages of Node and virtual environments are left out.
   */
  async addImportable(folder: string): Promise<void> {
    const real = await realpath(folder);
    if (this.#importable.has(real)) return;
    this.#importable.add(real);
    for (const entry of await readdir(real)) {
      const path = join(real, entry);
      const kind = await kindOf(path);
      if (kind === "file" && importable.test(entry)) await this.#addLink(path);
      if (kind !== "folder" || !/^[\p{ID_Start}_][\p{ID_Continue}]*$/u.test(entry)) continue;
      const isEnvironment = (await kindOf(join(path, "pyvenv.cfg"))) === "file";
      const isPackage = (await kindOf(join(path, "__init__.py"))) === "file";
      if (entry === "node_modules" || (isEnvironment && !isPackage)) continue;
      this.#lines.add(`folder ${this.shown(path)} ${this.shown(await realpath(path))}`);
      await this.addImportable(path);
    }
  }

  /**
   * Adds the code that a literal text names: a file relative to `folder` or to the project, a package, or a name in
   * `imports`.
   */
  async addReference(text: string, folder: string, runs: Runs): Promise<void> {
    for (const name of spellings(text)) {
      if (/^(?:\.{1,2}(?:[/\\]|$)|\/|file:)/u.test(name)) {
        const path = absolute(name, folder);
        if (path === undefined) continue;
        // Programs of the system change with its updates, and are not the project's.
        if (!isAbsolute(name) || program.test(path) || isBelow(path, this.root))
          await this.addModule(path, runs);
        if (!isAbsolute(name)) await this.addIfProgram(resolve(this.root, name), runs);
        continue;
      }
      if (name.startsWith("#")) await this.#addImportMap(folder, "imports", name, runs);
      // The code of such an address may be encoded. A file that it loads into this process is checked.
      if (runs === "outside" && /^data:[^,]*javascript/iu.test(name))
        this.addUnresolved(
          `${JSON.stringify(name.slice(0, 60))} contains code, and Reeve does not know what it loads`,
        );
      // `punycode` is a module of Node, and `punycode/` is a package.
      if (!isBuiltin(name)) await this.#addNamedPackage(name, folder, runs);
      // The text may be a command line.
      const words = /\s/u.test(name) ? wordsIn(name) : /[./]/u.test(name) ? [name] : [];
      for (const word of words)
        for (const base of new Set([folder, this.root])) await this.addIfProgram(resolve(base, word), runs);
    }
  }

  /** Adds the files that code in a language loads. For code that is not in a file. */
  async addCode(text: string, language: Language, folder: string, runs: Runs, place: string): Promise<void> {
    if (language === "python")
      for (const name of pythonImports(text)) await this.#addPythonModule(name, folder, runs);
    const names = language === "shell" ? wordsIn(text) : literalsIn(text);
    for (const name of names) await this.addReference(name, folder, runsOf(text, runs));
    if (computesNames(text, language, runs))
      this.addUnresolved(`${place} decides at run time which code it loads`);
  }

  /** Adds a module of Python as `import` finds it: relative to the file, or in a folder between it and the project. */
  async #addPythonModule(name: string, folder: string, runs: Runs): Promise<void> {
    const dots = /^\.*/u.exec(name)?.[0].length ?? 0;
    const parts = name.slice(dots).split(".").filter(Boolean);
    const start = resolve(folder, ...Array.from({ length: Math.max(dots - 1, 0) }, () => ".."));
    for (let at = start; ; at = dirname(at)) {
      for (let length = dots > 0 ? 0 : 1; length <= parts.length; length++) {
        const path = join(at, ...parts.slice(0, length));
        for (const file of [`${path}.py`, join(path, "__init__.py"), join(path, "__main__.py")])
          await this.addFile(file, runs);
      }
      if (dots > 0 || !isBelow(dirname(at), this.root)) return;
    }
  }

  /** Adds a file of the project only if it can be run or imported. Other texts name data files. */
  async addIfProgram(path: string, runs: Runs): Promise<void> {
    const facts = await stat(path).catch(() => undefined);
    if (facts?.isFile() !== true || !isBelow(path, this.root)) return;
    if (isProgramFile(path, facts.mode)) await this.addFile(path, runs);
  }

  /**
   * Adds the package with whose name the name of a module begins. `name` may be the name of a module in the
   * package.
   */
  async #addNamedPackage(name: string, folder: string, runs: Runs): Promise<void> {
    const [named = ""] = packageName.exec(name) ?? [];
    // The loader of modules gives every module this package itself. A program loads the one that it finds.
    if (!this.#hasPackages || (named === "reeve" && runs === "inside") || !isFileName(named)) return;
    const key = `${folder}\n${named}`;
    const finding = this.#found.get(key) ?? findPackage(named, folder);
    this.#found.set(key, finding);
    const found = await finding;
    if (found !== undefined) await this.addPackage(found, runs);
    else await this.#addSelf(named, name, folder, runs);
  }

  /**
   * Adds the exports of the package to which a folder belongs, if the package has this name, because a package may
   * import itself.
   */
  async #addSelf(named: string, name: string, folder: string, runs: Runs): Promise<void> {
    const at = await manifestFolder(folder);
    if (at !== undefined && (await manifestOf(at))["name"] === named)
      await this.#addImportMap(folder, "exports", `.${name.slice(named.length)}`, runs);
  }

  /**
   * Adds the files that the field `imports` or `exports` of the nearest `package.json` gives for a name, and all
   * files that the field names without a pattern.
   */
  async #addImportMap(folder: string, field: "imports" | "exports", name: string, runs: Runs): Promise<void> {
    const at = await manifestFolder(folder);
    if (at === undefined) return;
    const map = (await manifestOf(at))[field] ?? {};
    this.#lines.add(`${field} ${this.shown(at)} ${JSON.stringify(map)}`);
    for (const [key, target] of targetsIn(map)) {
      const [before = "", after] = key.split("*");
      const matches = after !== undefined && name.startsWith(before) && name.endsWith(after);
      const part = matches ? name.slice(before.length, name.length - after.length) : undefined;
      if (part !== undefined) await this.addReference(target.replaceAll("*", part), at, runs);
      else if (!target.includes("*")) await this.addReference(target, at, runs);
    }
  }

  /** Adds a link. The content of a linked folder is not covered: Node loads a file in it under its real path. */
  async #addLink(path: string): Promise<void> {
    const target = await realpath(path).catch(() => undefined);
    this.#lines.add(`link ${this.shown(path)} ${target === undefined ? "" : this.shown(target)}`);
    if (target !== undefined && (await kindOf(target)) === "file") await this.#read(target);
  }

  /**
   * Reads a file and adds the code that it loads. If it turns out later that the file runs outside of this process,
   * the file is searched again.
   */
  async #search(path: string, runs: Runs): Promise<void> {
    const before = this.#searched.get(path);
    if (before === runs || before === "outside") return;
    this.#searched.set(path, runs);
    const text = (await this.#read(path)).toString("utf8");
    const byName = languageOfFile(path, text.slice(0, 256));
    // Node reads a file without an ending as JavaScript.
    const isPlain = runs === "outside" && extname(path) === "" && !text.startsWith("#!");
    const language = byName ?? (isPlain ? "javascript" : undefined);
    if (language !== undefined) await this.addCode(text, language, dirname(path), runs, this.shown(path));
    else if (runs === "outside" && (text.startsWith("#!") || /\.(?:rb|pl|php|lua)$/u.test(path)))
      this.addUnresolved(`${this.shown(path)} is in a language whose imports Reeve does not know`);
  }

  async #read(path: string): Promise<Buffer> {
    if (!this.#files.has(path)) this.#bytes += (await stat(path)).size;
    if (this.#bytes > this.#maxBytes) throw this.#tooLarge(`${this.#maxBytes} bytes`);
    const content = await readFile(path);
    this.#files.set(path, contentHash(content));
    if (this.#files.size > this.#maxFiles) throw this.#tooLarge(`${this.#maxFiles} files`);
    return content;
  }

  #tooLarge(limit: string): Fault {
    return new Fault(
      "too_large",
      `the project ${this.root} cannot be trusted: its code, with all packages that it imports, is larger than ${limit}; import less`,
    );
  }
}

/** Whether a file can be run or imported, according to its extension or its permissions. */
export function isProgramFile(path: string, mode: number): boolean {
  return !data.test(path) && (program.test(path) || (mode & 0o111) !== 0);
}

/** Matches the name of the package in the name of a module. Node accepts any folder name. */
const packageName = /^(?:@[^/]+\/)?[^/]+/u;

/**
 * Whether a name can be the name of a package: it does not lead out of `node_modules` and is not too long for a file
 * name.
 */
function isFileName(name: string): boolean {
  return name.length <= 512 && name.split("/").every((part) => part !== "." && part !== "..");
}

/** Returns the targets in a field `imports` or `exports`, each with the name or pattern to which it belongs. */
function targetsIn(map: unknown, key = "."): readonly (readonly [key: string, target: string])[] {
  if (typeof map === "string") return [[key, map]];
  if (typeof map !== "object" || map === null) return [];
  return Object.entries(map).flatMap(([name, inner]) => targetsIn(inner, /^[.#]/u.test(name) ? name : key));
}

/** Returns the ways in which Node may read the name of a module. A URL may be percent-encoded and have a query. */
function spellings(text: string): ReadonlySet<string> {
  if (text.includes("\0")) return new Set();
  // The parser of addresses drops tabs and line ends, trims spaces, and reads a backslash as a slash.
  const address = text
    .replaceAll(/[\t\n\r]/gu, "")
    .trim()
    .replaceAll("\\", "/")
    .replace(/^file:/iu, "file:");
  const names = [text, address].flatMap((each) => {
    const name = each.replace(/[?#].*$/su, "");
    return [each, name, unescaped(each), unescaped(name)];
  });
  return new Set(names.filter((each) => each !== ""));
}

function unescaped(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    // The text is not percent-encoded.
    return name;
  }
}

function absolute(name: string, folder: string): string | undefined {
  if (!name.startsWith("file:")) return resolve(folder, name);
  try {
    return fileURLToPath(name);
  } catch {
    // The text is not a valid address and names no file.
    return undefined;
  }
}

function wordsIn(text: string): ReadonlySet<string> {
  return new Set(text.split(/[\s"'`=;|&()<>,:{}$]+/u).filter((word) => /[./]/u.test(word)));
}

/** Returns the folder of a package as Node finds it: the nearest `node_modules/NAME` at or above a folder. */
export async function findPackage(name: string, from: string): Promise<string | undefined> {
  for (let at = from; ; at = dirname(at)) {
    const folder = join(at, "node_modules", name);
    if (!at.endsWith(`${sep}node_modules`) && (await kindOf(folder)) === "folder") return folder;
    if (dirname(at) === at) return undefined;
  }
}

/** Returns the folder of the package that contains a file: the folder in the last `node_modules` of its path. */
async function packageAround(file: string): Promise<string | undefined> {
  const part = `${sep}node_modules${sep}`;
  const at = file.lastIndexOf(part);
  if (at === -1) return undefined;
  const [first = "", second = ""] = file.slice(at + part.length).split(sep);
  const folder = join(file.slice(0, at), "node_modules", first, first.startsWith("@") ? second : "");
  return (await kindOf(folder)) === "folder" ? folder.replace(/[/\\]$/u, "") : undefined;
}

async function kindOf(path: string): Promise<"file" | "folder" | undefined> {
  const facts = await stat(path).catch(() => undefined);
  if (facts?.isDirectory() === true) return "folder";
  return facts?.isFile() === true ? "file" : undefined;
}

/** The nearest folder with a `package.json` at or above a folder, as Node finds it. */
async function manifestFolder(folder: string): Promise<string | undefined> {
  for (let at = folder; ; at = dirname(at)) {
    if ((await kindOf(join(at, "package.json"))) === "file") return at;
    if (dirname(at) === at || at.endsWith(`${sep}node_modules`)) return undefined;
  }
}

/** Returns the manifest of a package. Empty if there is no manifest, or Node cannot read it either. */
export async function manifestOf(folder: string): Promise<JsonObject> {
  try {
    const manifest: unknown = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
    return typeof manifest === "object" && manifest !== null ? (manifest as JsonObject) : {};
  } catch (error) {
    if (isAbsent(error) || error instanceof SyntaxError) return {};
    throw error;
  }
}

/** The hash of a file or a text of a workspace: SHA-256 in hexadecimal digits. */
export function contentHash(content: string | Uint8Array): string {
  return hashOf("sha256", content, "hex");
}
