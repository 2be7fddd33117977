export { auditLog } from "./client/audit-log.ts";
export { storedSchedules } from "./client/stored-schedules.ts";
export { openStore, refuseAbsentFile, type StoreAddress } from "./open-store.ts";
export { getRunContext, insideCall } from "./process/async-context.ts";
export type { RunRetry } from "./process/run-retry.ts";
export { sha256 } from "./process/sha256.ts";
export { systemClock, systemRandom } from "./process/system-sources.ts";
export type { RuntimeOptions } from "./runtime-options.ts";
export { memoryStore } from "./stores/memory/store.ts";
