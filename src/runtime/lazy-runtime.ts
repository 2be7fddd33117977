import type { Runtime } from "../kernel/index.ts";
import type { RuntimeOptions } from "./open-runtime.ts";

/**
 * Opens a runtime on a store and goes on with whatever was left there. What drives runs is loaded with the first that is opened: who names
 * agents and tools only, does not wait for it.
 */
export async function openRuntimeLazily(options?: RuntimeOptions): Promise<Runtime> {
  const { openRuntime: open } = await import("./open-runtime.ts");
  return open(options);
}
