import { priceCatalog } from "./capabilities/index.ts";
import type { Runtime } from "./kernel/index.ts";
import { openRuntime as openBareRuntime, type RuntimeOptions } from "./runtime/index.ts";

export {
  CostTracker,
  ExecutionTracker,
  HookManager,
  react,
  RunLogger,
  soloAgent,
  SpawnTracker,
  type Amounts,
  type Cost,
  type ExecutionTrackerOptions,
  type Hold,
  type HookFailure,
  type HookManagerOptions,
  type LoggedMoment,
  type ReAct,
  type ReActDependencies,
  type Reserving,
  type RunLoggerOptions,
  type SoloAgentOptions,
  type Spending,
} from "./agents/index.ts";
export {
  priceCatalog,
  tool,
  type PriceCatalogOptions,
  type PriceOverride,
  type ToolOptions,
  type ToolReturn,
  type UsdPerMillion,
} from "./capabilities/index.ts";
export { BudgetExhaustedError, Fault, HookEvent, Priority, RetryPolicy } from "./kernel/index.ts";
export {
  getRunContext,
  memoryStore,
  sha256,
  type MemoryStoreOptions,
  type RunRetry,
  type RuntimeOptions,
} from "./runtime/index.ts";

/** Opens a runtime on a store and goes on with whatever was left there. Prices are those of `priceCatalog()` unless told. */
export function openRuntime(options: RuntimeOptions = {}): Promise<Runtime> {
  return openBareRuntime({ prices: priceCatalog(), ...options });
}
