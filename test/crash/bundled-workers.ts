import { fileURLToPath, pathToFileURL } from "node:url";
import type { TestProject } from "vitest/node";
import { bundleScripts } from "../bundle-scripts.ts";
import { preparedOnce, type Prepared } from "../shared-setup.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** URL of the folder with the bundled worker scripts. */
    readonly crashWorkers: string;
  }
}

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/**
 * Bundles the scripts of the worker processes: the suites start about a thousand of them. The checkpointer is an entry,
 * because it starts itself as a thread.
 */
async function bundle(): Promise<Prepared<string>> {
  const bundled = await bundleScripts({
    "caps-worker": here("caps-worker.ts"),
    "chat-worker": here("chat-worker.ts"),
    worker: here("worker.ts"),
    "contents-worker": here("contents-worker.ts"),
    "deadly-worker": here("deadly-worker.ts"),
    "experiment-worker": here("experiment-worker.ts"),
    "fleet-worker": here("fleet-worker.ts"),
    "gateway-worker": here("gateway-worker.ts"),
    "demo-process": here("../hire/demo-process.ts"),
    "hire-worker": here("hire-worker.ts"),
    "loop-worker": here("loop-worker.ts"),
    "money-worker": here("money-worker.ts"),
    "program-worker": here("program-worker.ts"),
    "responses-worker": here("responses-worker.ts"),
    "schedule-worker": here("schedule-worker.ts"),
    "serving-worker": here("serving-worker.ts"),
    "watched-worker": here("watched-worker.ts"),
    checkpointer: here("../../src/runtime/stores/sqlite/db/checkpointer.ts"),
  });
  return { value: pathToFileURL(`${bundled.dir}/`).href, remove: () => bundled.remove() };
}

/** Provides the bundled scripts. The suites share them. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const { value, remove } = await preparedOnce("crash workers", bundle);
  project.provide("crashWorkers", value);
  return remove;
}
