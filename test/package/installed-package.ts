import { createHash } from "node:crypto";
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import type { TestProject } from "vitest/node";
import { packedFile, unpack } from "../../build/installed-tree.ts";
import { buildPage } from "../../build/page.ts";
import { repository } from "../gates/run-node.ts";

declare module "vitest" {
  interface ProvidedContext {
    readonly installed: InstalledPackage;
  }
}

/** What the tests of the package get: the file that `npm pack` writes, and a folder in which it is installed. */
export interface InstalledPackage {
  /** The packed file. */
  readonly file: string;
  /** A folder of a user that has nothing but `node_modules`, with the package and all its optional packages. */
  readonly project: string;
  /** The command `reeve` of that folder. */
  readonly command: string;
  /** The files of the clone before it was packed and after it. */
  readonly before: readonly string[];
  readonly after: readonly string[];
}

/** The parts of the repository from which the package is made. */
const parts = [
  "package.json",
  "package-lock.json",
  "tsconfig.base.json",
  "settings.schema.json",
  "CHANGELOG.md",
  "LICENSE",
  "README.md",
  "build",
  "dist",
  "docs",
  "examples",
  "src",
  "web",
];

/** Packs a clone of the repository once for the whole suite, and installs the packed file without a network. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  await buildPage();
  // Outside node_modules, where Node runs no TypeScript.
  const folder = await mkdtemp(join(tmpdir(), "reeve-package-"));
  const clone = join(folder, "clone");
  for (const part of parts)
    await cp(join(repository, part), join(clone, part), { recursive: true, preserveTimestamps: true });
  await symlink(join(repository, "node_modules"), join(clone, "node_modules"));
  const before = await listing(clone);
  const file = await packedFile(clone, folder);
  const after = await listing(clone);
  await rm(clone, { recursive: true });
  const installed = await install(file, join(folder, "project"));
  project.provide("installed", { file, before, after, ...installed });
  project.provide("builtPackage", join(installed.project, "node_modules/reeve"));
  return () => rm(folder, { recursive: true, force: true, maxRetries: 10 });
}

/** Installs a packed file, and links the packages of the repository beside it. */
async function install(
  file: string,
  project: string,
): Promise<Pick<InstalledPackage, "project" | "command">> {
  const packages = join(project, "node_modules");
  await unpack(file, join(packages, "reeve"));
  const isOther = (name: string): boolean => !name.startsWith(".") && !name.startsWith("reeve");
  for (const name of (await readdir(join(repository, "node_modules"))).filter(isOther))
    await symlink(join(repository, "node_modules", name), join(packages, name));
  const { bin } = JSON.parse(await readFile(join(packages, "reeve/package.json"), "utf8")) as {
    readonly bin: Readonly<Record<string, string>>;
  };
  const command = join(packages, ".bin/reeve");
  const program = join(packages, "reeve", bin["reeve"] ?? "");
  await mkdir(join(packages, ".bin"));
  await chmod(program, 0o755);
  await symlink(relative(join(packages, ".bin"), program), command);
  await writeFile(join(project, "package.json"), JSON.stringify({ type: "module" }));
  return { project, command };
}

/** One line for each file below a folder, without the installed packages: path, time of the last change and hash. */
async function listing(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const lines = entries
    .filter((entry) => entry.isFile())
    .map(async ({ parentPath, name }) => {
      const path = join(parentPath, name);
      const hash = createHash("sha256").update(await readFile(path));
      return `${relative(folder, path)} ${(await stat(path)).mtimeMs} ${hash.digest("hex")}`;
    });
  return (await Promise.all(lines)).toSorted();
}
