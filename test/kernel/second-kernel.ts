import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { onTestFinished } from "vitest";
import type * as kernel from "../../src/kernel/index.ts";

export type Kernel = typeof kernel;

/** Loads the kernel a second time, from a copy of its sources, as a program does that has two copies of the package. */
export async function secondKernel(): Promise<Kernel> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-kernel-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await cp(fileURLToPath(new URL("../../src/kernel", import.meta.url)), folder, { recursive: true });
  await writeFile(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  return (await import(pathToFileURL(join(folder, "index.ts")).href)) as Kernel;
}
