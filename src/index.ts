export {
  react,
  soloAgent,
  type ReAct,
  type ReActDependencies,
  type ReActOptions,
  type SoloAgentOptions,
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
