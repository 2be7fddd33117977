import {
  appendFile,
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, relative, sep } from "node:path";
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
  /** Whether the copy contains what the last `tsc -b` wrote, so that the compiler checks only what differs. Default: `false`. */
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
    await appendFile(join(this.#root, file), source);
  }

  run(tool: Tool, ...args: readonly string[]): Promise<Finished> {
    // The compiler reads the whole repository, which takes long beside other suites.
    return runNode([join(repository, "node_modules", toolFiles[tool]), ...args], this.#root, 180_000);
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
    const filter = (path: string): boolean => isSource(path) && (isBuilt || !isOutput(path));
    await cp(repository, root, { recursive: true, preserveTimestamps: true, filter });
    await linkPackages(root);
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

function isSource(path: string): boolean {
  return !relative(repository, path)
    .split(sep)
    .some((name) => leftOut.has(name));
}

function isOutput(path: string): boolean {
  return relative(repository, path).split(sep).includes("dist") || path.endsWith(".tsbuildinfo");
}

/**
 * Links each package separately and recreates the links to workspaces. With one link for the whole folder, `reeve`
 * would resolve to the repository instead of the copy.
 */
async function linkPackages(root: string): Promise<void> {
  const installed = join(repository, "node_modules");
  await mkdir(join(root, "node_modules"));
  for (const entry of await readdir(installed, { withFileTypes: true })) {
    const path = join(installed, entry.name);
    const target = entry.isSymbolicLink() ? await readlink(path) : path;
    await symlink(target, join(root, "node_modules", entry.name));
  }
}
