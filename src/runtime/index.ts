export { checkReplay, type CheckReplayOptions, type ReplayReport } from "./check-replay.ts";
export { auditLog } from "./client/audit-log.ts";
export { objectCallId } from "./client/object-client.ts";
export { retriedStep } from "./context/context-options.ts";
export { readRequest, readRequests } from "./client/recorded-request.ts";
export { storedSchedules } from "./client/stored-schedules.ts";
export {
  inspectStore,
  type InspectedStore,
  openStore,
  refuseAbsentFile,
  sqlitePath,
  type StoreAddress,
} from "./open-store.ts";
export { getRunContext, insideCall, isInsideTask } from "./process/async-context.ts";
export type { RunRetry } from "./process/run-retry.ts";
export { parseModelName } from "./process/session-model.ts";
export { findStarter, type RunStarter } from "./journal/existing-run.ts";
export { repairAddress } from "./journal/wait-names.ts";
export { sha256, sha256Hex } from "./process/sha256.ts";
export { systemClock, systemRandom } from "./process/system-sources.ts";
export type { RuntimeOptions } from "./runtime-options.ts";
export type { ClientOptions } from "./store-client.ts";
export {
  planStoreUpgrade,
  type StoreUpgradeOptions,
  type StoreUpgradePlan,
  upgradeStore,
} from "./upgrade-store.ts";
export { memoryStore } from "./stores/memory/store.ts";
export { readOnlyPlace } from "./stores/sqlite/db/read-only-place.ts";
export { runIdWithin } from "./journal/run-ids.ts";
export { rejectionOf } from "./journal/recorded-faults.ts";
export type { CheckedRun, SkippedTask } from "./run/replay-check.ts";
export type { DifferenceKind, ReplayDifference } from "./run/task-replay.ts";
export type { SourceUse } from "./run/watched-sources.ts";
