import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { inject } from "vitest";
import { runNode, type Finished } from "../gates/run-node.ts";

/** Arguments of Node that keep the program it runs from opening connections to other machines. */
export const withoutNetwork = ["--import", import.meta.resolve("./no-network.ts")];

/** Runs Node without a network in a temporary folder of the user's project, so that files written by the program are removed. */
export function runOffline(args: readonly string[]): Promise<Finished> {
  return inFolder((folder) => runNode([...withoutNetwork, ...args], folder));
}

/** What a module printed, and the error with which it ended. */
export interface RunModule {
  readonly stdout: string;
  readonly error?: string;
}

/** A module: its text, as a user of the installed package would write it, or a file. */
export type OfflineModule = { readonly code: string } | { readonly file: string };

/** The modules that `module-runner.ts` runs, and the marks that it prints before each module and before an error. */
export interface ModuleList {
  readonly start: string;
  readonly failure: string;
  readonly modules: readonly { readonly file: string; readonly folder: string }[];
}

const marks = { start: "\u0002module\n", failure: "\u0002failure\n" };
const runner = fileURLToPath(new URL("module-runner.ts", import.meta.url));

/**
 * Runs modules without a network, one after another in one process, each in a temporary folder of the user's project. A
 * process for each would take most of the time of the suite. Rejects if the process fails or does not end by itself.
 */
export function runModules(modules: readonly OfflineModule[]): Promise<readonly RunModule[]> {
  return inFolder(async (folder) => {
    const places: ModuleList["modules"][number][] = [];
    for (const module of modules) {
      const own = await mkdtemp(join(folder, "module-"));
      const file = "file" in module ? module.file : join(own, "module.ts");
      if ("code" in module) await writeFile(file, module.code);
      places.push({ file, folder: own });
    }
    const list = join(folder, "modules.json");
    await writeFile(list, JSON.stringify({ ...marks, modules: places } satisfies ModuleList));
    const { code, stdout, stderr } = await runNode([...withoutNetwork, runner, list], folder);
    const printed = stdout.split(marks.start).slice(1);
    if (code !== 0 || printed.length !== modules.length)
      throw new Error(`module ${printed.length} of ${modules.length} ended the process (${code}): ${stderr}`);
    return printed.map((text) => {
      const [own = "", error] = text.split(marks.failure);
      return { stdout: own, ...(error !== undefined && { error }) };
    });
  });
}

async function inFolder<Result>(work: (folder: string) => Promise<Result>): Promise<Result> {
  const folder = await mkdtemp(join(inject("installed").project, "offline-"));
  try {
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  }
}
