import { findNamedModel, priceCatalog } from "../capabilities/index.ts";
import { Fault, type CronReader, type Runtime } from "../kernel/index.ts";
import { unsupportedNode } from "./node-version.ts";
import type { RuntimeOptions } from "../runtime/index.ts";

/** Shared by all runtimes: the catalog never changes and is read once. */
const prices = priceCatalog();

/** Loads croner when the first cron expression or local time is read. */
async function cron(): Promise<CronReader> {
  const { cronReader } = await import("../capabilities/schedules/cron-reader.ts");
  return cronReader;
}

/**
 * Opens a runtime on a store, and resumes the runs in the store that no other worker drives.
 *
 * The import is dynamic so that a program which only defines agents and tools does not load the worker: Node compiles
 * and evaluates the modules on the first call. Gain, in `npm run bench -- tools`, row "import of reeve, fresh process":
 * 29 %.
 */
export async function openRuntime(options: RuntimeOptions = {}): Promise<Runtime> {
  const problem = unsupportedNode(process.versions.node);
  if (problem !== undefined) throw new Fault("unsupported", problem);
  const { createRuntime } = await import("../runtime/local-runtime.ts");
  return createRuntime({ prices, resolveModel: findNamedModel, cron, ...options });
}
