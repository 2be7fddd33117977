import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { inject } from "vitest";
import { runNode, type Finished } from "../gates/run-node.ts";

/** Runs Node without a network in a temporary folder of the published package, so that files written by the program are removed. */
export function runOffline(args: readonly string[]): Promise<Finished> {
  return inFolder((folder) => runNode([...withoutNetwork, ...args], folder));
}

/** Runs a module given as text, as a user of the published package would write it, without a network. */
export function runModule(code: string): Promise<Finished> {
  return inFolder(async (folder) => {
    const file = join(folder, "module.ts");
    await writeFile(file, code);
    return runNode([...withoutNetwork, file], folder);
  });
}

/** Arguments of Node that keep the program it runs from opening connections to other machines. */
export const withoutNetwork = ["--import", import.meta.resolve("./no-network.ts")];

async function inFolder(work: (folder: string) => Promise<Finished>): Promise<Finished> {
  const folder = await mkdtemp(join(inject("builtPackage"), "offline-"));
  try {
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
