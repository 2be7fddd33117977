export { auditLog } from "./audit-log.ts";
export { openRuntime, type RuntimeOptions } from "./open-runtime.ts";
export { openStore, type OpenStoreOptions, type StoreAddress } from "./open-store.ts";
export { getRunContext } from "./run-facts-storage.ts";
export type { RunRetry } from "./run-retry.ts";
export { sha256 } from "./sha256.ts";
export { systemClock } from "./system-clock.ts";
export { memoryStore, type MemoryStoreOptions } from "./stores/memory/store.ts";
export { systemRandom } from "./system-random.ts";
