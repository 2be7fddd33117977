import { cp, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { bundle } from "../build/bundle.ts";
import { repository } from "./gates/run-node.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Folder with the package as it is published. A module in it imports the package as `reeve`. */
    readonly builtPackage: string;
  }
}

/** The published files and folders, without `dist`. */
const parts = [
  "package.json",
  "settings.schema.json",
  "CHANGELOG.md",
  "LICENSE",
  "README.md",
  "docs",
  "examples",
];

/**
 * Bundles the package for suites that start it many times. It loads in half the time of the sources. The suite of the
 * package gets the compiled modules and their declarations, as they are published.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  // Outside node_modules, where Node runs no TypeScript.
  const root = await mkdtemp(join(tmpdir(), "reeve-package-"));
  for (const part of parts) await cp(join(repository, part), join(root, part), { recursive: true });
  await rm(join(root, "examples/package.json"));
  await symlink(join(repository, "node_modules"), join(root, "node_modules"));
  if (project.name === "package") {
    await copyDeclarations(root);
    await bundle(root, { directory: join(repository, "dist"), extension: "js" });
  } else await bundle(root, { directory: join(repository, "src"), extension: "ts" });
  project.provide("builtPackage", root);
  return () => rm(root, { recursive: true, force: true });
}

/** Copies what `tsc -b` and the build of the page wrote, without the modules, which the bundle replaces. */
async function copyDeclarations(root: string): Promise<void> {
  const isPublished = (path: string): boolean => !/\.(?:js|js\.map|tsbuildinfo)$/u.test(path);
  const [from, to] = [join(repository, "dist"), join(root, "dist")];
  await cp(from, to, { recursive: true, filter: isPublished });
  await cp(join(from, "page"), join(to, "page"), { recursive: true });
}
