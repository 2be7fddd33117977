export { ReAct, react, type ReActDependencies } from "./architectures/react.ts";
export { composeGate, type GateParts } from "./gate/compose-gate.ts";
export type { ToolExtension } from "./gate/extension-layer.ts";
export { ToolHooks, type PostToolHook, type PreToolHook, type ToolHooksOptions } from "./gate/tool-hooks.ts";
export { GuardedRun, type Tripped } from "./guardrails/guarded-run.ts";
export { inMemoryApprovals, type InMemoryApprovals } from "./permissions/approval-memory.ts";
export type { PermissionRule } from "./permissions/permission-rule.ts";
export {
  permissions,
  type PermissionPolicy,
  type PermissionRules,
  type PermissionsOptions,
} from "./permissions/permissions.ts";
export { soloAgent, type SoloAgentOptions } from "./solo-agent.ts";
