import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { rolldown } from "rolldown";
import type { TestProject } from "vitest/node";

declare module "vitest" {
  interface ProvidedContext {
    /** URL of the folder with the bundled worker scripts. */
    readonly crashWorkers: string;
  }
}

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/**
 * Bundles the scripts of the worker processes. The suite starts about a thousand processes, and a bundle loads in half the
 * time that the separate sources need. The checkpointer is an entry, because it starts itself as a thread.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  // In the repository, so that the bundle finds the installed packages.
  const cache = here("../../node_modules/.cache");
  await mkdir(cache, { recursive: true });
  const dir = await mkdtemp(join(cache, "crash-workers-"));
  const built = await rolldown({
    input: {
      "caps-worker": here("caps-worker.ts"),
      worker: here("worker.ts"),
      "contents-worker": here("contents-worker.ts"),
      "deadly-worker": here("deadly-worker.ts"),
      "money-worker": here("money-worker.ts"),
      "schedule-worker": here("schedule-worker.ts"),
      "serving-worker": here("serving-worker.ts"),
      "watched-worker": here("watched-worker.ts"),
      checkpointer: here("../../src/runtime/stores/sqlite/db/checkpointer.ts"),
    },
    external: /^[^./]/u,
    platform: "node",
  });
  await built.write({
    dir,
    format: "esm",
    entryFileNames: "[name].mjs",
    chunkFileNames: "[name]-[hash].mjs",
  });
  await built.close();
  project.provide("crashWorkers", pathToFileURL(`${dir}/`).href);
  return () => rm(dir, { recursive: true, force: true });
}
