import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { repository, runNode, type Finished } from "../gates/run-node.ts";

/** Runs Node without a network in a temporary folder, so that files written by the program are removed. */
export function runOffline(args: readonly string[]): Promise<Finished> {
  return inFolder((folder) => runNode([...withoutNetwork, ...args], folder));
}

/** Runs a module given as text, as a user of the package would write it, without a network in a temporary folder. */
export function runModule(code: string): Promise<Finished> {
  return inFolder(async (folder) => {
    await symlink(join(repository, "node_modules"), join(folder, "node_modules"));
    await writeFile(join(folder, "package.json"), JSON.stringify({ type: "module" }));
    const file = join(folder, "module.ts");
    await writeFile(file, code);
    return runNode([...withoutNetwork, file], folder);
  });
}

/** Arguments of Node that keep the program it runs from opening connections to other machines. */
export const withoutNetwork = ["--import", import.meta.resolve("./no-network.ts")];

async function inFolder(work: (folder: string) => Promise<Finished>): Promise<Finished> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-offline-"));
  try {
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
