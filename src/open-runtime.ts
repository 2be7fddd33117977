import { priceCatalog } from "./capabilities/index.ts";
import type { Runtime } from "./kernel/index.ts";
import { openRuntime as openBareRuntime, type RuntimeOptions } from "./runtime/index.ts";

/** One list for all runtimes: it never changes, and is read once. */
const prices = priceCatalog();

/** Opens a runtime on a store and goes on with whatever was left there. Prices are those of `priceCatalog()` unless told. */
export function openRuntime(options: RuntimeOptions = {}): Promise<Runtime> {
  return openBareRuntime({ prices, ...options });
}
