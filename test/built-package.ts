import { cp, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { bundle } from "../build/bundle.ts";
import { repository } from "./gates/run-node.ts";
import { preparedOnce, type Prepared } from "./shared-setup.ts";

declare module "vitest" {
  interface ProvidedContext {
    /**
     * Folder of the package: in the suite `package` the installed one, else a bundle of the sources. A module in it imports
     * the package as `reeve`.
     */
    readonly builtPackage: string;
  }
}

/** The published files and folders that the command line reads, without `dist`. */
const parts = ["package.json", "settings.schema.json", "docs", "examples"];

/** Bundles the sources for suites that start the command line many times. The bundle loads in half the time. */
async function build(): Promise<Prepared<string>> {
  // Outside node_modules, where Node runs no TypeScript.
  const root = await mkdtemp(join(tmpdir(), "reeve-package-"));
  for (const part of parts) await cp(join(repository, part), join(root, part), { recursive: true });
  await rm(join(root, "examples/package.json"));
  await symlink(join(repository, "node_modules"), join(root, "node_modules"));
  await bundle(repository, join(root, "dist"), { directory: join(repository, "src"), extension: "ts" });
  return { value: root, remove: () => rm(root, { recursive: true, force: true }) };
}

/** Provides the bundled package. The suites share it. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const { value, remove } = await preparedOnce("built package", build);
  project.provide("builtPackage", value);
  return remove;
}
