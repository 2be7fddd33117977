export { ReAct, react, type ReActDependencies } from "./architectures/react.ts";
export { CostTracker, type Cost } from "./hooks/cost-tracker.ts";
export { HookManager, type HookFailure, type HookManagerOptions } from "./hooks/hook-manager.ts";
export { RunLogger, type LoggedMoment, type RunLoggerOptions } from "./hooks/run-logger.ts";
export { ExecutionTracker, type Amounts, type ExecutionTrackerOptions } from "./policy/execution-tracker.ts";
export type { Hold, Reserving, Spending } from "./policy/own-purse.ts";
export { SpawnTracker } from "./policy/spawn-tracker.ts";
export { soloAgent, type SoloAgentOptions } from "./solo-agent.ts";
