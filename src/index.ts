import { ToolHooks, type ToolHooksOptions } from "./agents/index.ts";
import { systemClock } from "./runtime/index.ts";

export {
  composeGate,
  GuardedRun,
  inMemoryApprovals,
  permissions,
  react,
  soloAgent,
  ToolHooks,
  type GateParts,
  type InMemoryApprovals,
  type PermissionPolicy,
  type PermissionRule,
  type PermissionRules,
  type PermissionsOptions,
  type PostToolHook,
  type PreToolHook,
  type ReAct,
  type ReActDependencies,
  type SoloAgentOptions,
  type ToolExtension,
  type ToolHooksOptions,
  type Tripped,
} from "./agents/index.ts";
export { tool, type ToolOptions, type ToolReturn } from "./capabilities/index.ts";
export {
  getRunContext,
  memoryStore,
  openRuntime,
  sha256,
  type MemoryStoreOptions,
  type RunRetry,
  type RuntimeOptions,
} from "./runtime/index.ts";

/** Hooks of the tool gate, timed by the machine's clock. */
export function toolHooks(options: Partial<ToolHooksOptions> = {}): ToolHooks {
  return new ToolHooks({ clock: systemClock, ...options });
}
