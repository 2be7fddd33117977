export {
  react,
  soloAgent,
  type ReAct,
  type ReActDependencies,
  type SoloAgentOptions,
} from "./agents/index.ts";
export {
  openTelemetry,
  tool,
  type OpenTelemetryOptions,
  type ToolOptions,
  type ToolReturn,
} from "./capabilities/index.ts";
export {
  getRunContext,
  memoryStore,
  openRuntime,
  sha256,
  type MemoryStoreOptions,
  type RunRetry,
  type RuntimeOptions,
} from "./runtime/index.ts";
