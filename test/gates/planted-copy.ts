import {
  copyFileSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  statSync,
  symlinkSync,
  utimesSync,
} from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { repository, runNode, type Finished } from "./run-node.ts";

const toolFiles = {
  knip: "knip/bin/knip.js",
  oxfmt: "oxfmt/bin/oxfmt",
  oxlint: "oxlint/bin/oxlint",
  tsc: "typescript/bin/tsc",
};

type Tool = keyof typeof toolFiles;

const leftOut = new Set([".git", "node_modules", "coverage", ".reeve"]);

export interface CopyOptions {
  /**
   * Whether the copy contains what the last `tsc -b` wrote, so that the compiler checks only what differs. For the same
   * reason it then contains the types of the packages at the same relative paths. Default: `false`.
   */
  readonly isBuilt?: boolean;
}

/**
 * A temporary copy of this repository, in which a test plants violations. A gate judges the copy as it judges the
 * repository.
 */
export class PlantedCopy {
  readonly #root: string;

  constructor(root: string) {
    this.#root = root;
  }

  async plant(files: Readonly<Record<string, string>>): Promise<void> {
    for (const [file, source] of Object.entries(files)) {
      await mkdir(dirname(join(this.#root, file)), { recursive: true });
      await writeFile(join(this.#root, file), source, { flag: "wx" });
    }
  }

  async append(file: string, source: string): Promise<void> {
    const path = join(this.#root, file);
    const before = await readFile(path, "utf8");
    // The file is a link to the one in the repository, which must not change.
    await rm(path);
    await writeFile(path, before + source);
  }

  run(tool: Tool, ...args: readonly string[]): Promise<Finished> {
    return runNode([join(repository, "node_modules", toolFiles[tool]), ...args], this.#root);
  }

  /** Runs a script of package.json that calls one tool, so that the test always uses the same command as the gate. */
  async runScript(name: string, ...more: readonly string[]): Promise<Finished> {
    const [tool, ...args] = ((await readScripts())[name] ?? "").split(" ");
    if (!isTool(tool)) throw new Error(`the script ${name} is not a call of a known tool`);
    return this.run(tool, ...args, ...more);
  }
}

/** Creates a copy, calls `use` with it, and removes it. */
export async function inCopy<Result>(
  use: (copy: PlantedCopy) => Promise<Result>,
  { isBuilt = false }: CopyOptions = {},
): Promise<Result> {
  const root = await mkdtemp(join(tmpdir(), "reeve-gates-"));
  try {
    recreate(repository, root, (name) => !leftOut.has(name) && (isBuilt || !isOutput(name)));
    const [installed, packages] = [join(repository, "node_modules"), join(root, "node_modules")];
    if (isBuilt) recreate(installed, packages, isTypes);
    else linkPackages(installed, packages);
    return await use(new PlantedCopy(root));
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

export async function readScripts(): Promise<Readonly<Record<string, string>>> {
  const manifest: unknown = JSON.parse(await readFile(join(repository, "package.json"), "utf8"));
  return (manifest as { readonly scripts: Record<string, string> }).scripts;
}

function isTool(name: string | undefined): name is Tool {
  return name !== undefined && Object.hasOwn(toolFiles, name);
}

function isOutput(name: string): boolean {
  return name === "dist" || name.endsWith(".tsbuildinfo");
}

/** Whether an entry of a folder of packages is a folder, a manifest or a declaration. */
function isTypes(name: string, isFile: boolean): boolean {
  return isFile ? /(?:\.d\.[cm]?ts|^package\.json)$/u.test(name) : !name.startsWith(".");
}

/**
 * Recreates the folder `from` as `to`, with the entries that `isWanted` accepts. Sources are hard links, which take a
 * tenth of the time of copies; no tool writes to them. Files that the compiler may write are copies.
 */
function recreate(
  from: string,
  to: string,
  isWanted: (name: string, isFile: boolean) => boolean,
  isWritten = false,
): void {
  mkdirSync(to, { recursive: true });
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const { name } = entry;
    if (!isWanted(name, entry.isFile())) continue;
    const [path, copy] = [join(from, name), join(to, name)];
    const isOwn = isWritten || isOutput(name);
    if (entry.isDirectory()) recreate(path, copy, isWanted, isOwn);
    else if (entry.isSymbolicLink()) symlinkSync(readlinkSync(path), copy);
    else if (!isOwn) linkOrCopy(path, copy);
    // The compiler reads only the declarations of what it wrote.
    else if (!/\.(?:js|map)$/u.test(name)) copyWithTime(path, copy);
  }
}

function linkOrCopy(from: string, to: string): void {
  try {
    linkSync(from, to);
  } catch (error) {
    // The temporary folder is on another file system.
    if ((error as NodeJS.ErrnoException).code !== "EXDEV") throw error;
    copyWithTime(from, to);
  }
}

/** Copies a file and its time, by which the compiler knows what has changed. */
function copyWithTime(from: string, to: string): void {
  copyFileSync(from, to);
  const { atime, mtime } = statSync(from);
  utimesSync(to, atime, mtime);
}

/**
 * Links each package separately and recreates the links to workspaces. With one link for the whole folder, `reeve`
 * would resolve to the repository instead of the copy.
 */
function linkPackages(installed: string, packages: string): void {
  mkdirSync(packages);
  for (const entry of readdirSync(installed, { withFileTypes: true })) {
    const path = join(installed, entry.name);
    symlinkSync(entry.isSymbolicLink() ? readlinkSync(path) : path, join(packages, entry.name));
  }
}
