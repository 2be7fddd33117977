import { soloAgent as soloAgentOf, type SoloAgentOptions as OptionsOfModel } from "./agents/index.ts";
import { toModel, type ModelLike } from "./capabilities/index.ts";
import type { Agent } from "./kernel/index.ts";

export { react, type ReAct, type ReActDependencies } from "./agents/index.ts";
export {
  fallback,
  namedModel,
  route,
  structuredOutput,
  tool,
  toModel,
  withSettings,
  type AiSdkModel,
  type FallbackOptions,
  type ModelLike,
  type ModelName,
  type ModelSettings,
  type NamedModelOptions,
  type RouteOptions,
  type StructuredOutput,
  type StructuredOutputOptions,
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

export interface SoloAgentOptions extends Omit<OptionsOfModel, "model"> {
  /** Of an AI SDK provider, by its name (`"anthropic/claude-sonnet-5"`), or one of your own. */
  readonly model: ModelLike;
}

/** An agent that thinks by ReAct and works alone: one model, its tools, one answer. */
export function soloAgent(options: SoloAgentOptions): Agent {
  return soloAgentOf({ ...options, model: toModel(options.model) });
}
