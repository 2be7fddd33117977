import {
  soloAgent as soloAgentOf,
  ToolHooks,
  type SoloAgentOptions as ModelAgentOptions,
  type ToolHooksOptions,
} from "./agents/index.ts";
import { toModel, type ModelLike } from "./capabilities/index.ts";
import type { Agent } from "./kernel/index.ts";
import { systemClock } from "./runtime/index.ts";

export {
  composeGate,
  GuardedRun,
  inMemoryApprovals,
  permissions,
  contextMessages,
  estimateTokens,
  isSummary,
  modelBudget,
  PromptWindow,
  react,
  selectiveToolCalls,
  sessionCompaction,
  sessionContext,
  slidingWindow,
  ToolHooks,
  type GateParts,
  type InMemoryApprovals,
  type PermissionPolicy,
  type PermissionRule,
  type PermissionRules,
  type PermissionsOptions,
  type PostToolHook,
  type PreToolHook,
  summarization,
  summarizeEach,
  summarizeIn,
  summarizeWith,
  summaryMessage,
  summaryOf,
  tokenBudget,
  toolResultTruncation,
  truncation,
  usualFileUse,
  withGuardrailModels,
  type FileUse,
  type ModelBudgetOptions,
  type ReAct,
  type ReActDependencies,
  type SelectiveToolCallsOptions,
  type SessionCompactionOptions,
  type SessionContext,
  type ShownEntry,
  type SlidingWindowOptions,
  type ToolExtension,
  type ToolHooksOptions,
  type Tripped,
  type SummarizationOptions,
  type Summarizer,
  type SummarizerOptions,
  type SummaryAttempt,
  type SummaryRequest,
  type TokenBudgetOptions,
  type TokenCounter,
  type ToolResultTruncationOptions,
  type TruncationOptions,
  type WindowChange,
} from "./agents/index.ts";
export {
  fallback,
  namedModel,
  openTelemetry,
  route,
  tool,
  toModel,
  withSettings,
  type AiSdkModel,
  type FallbackOptions,
  type ModelLike,
  type ModelName,
  type ModelSettings,
  type NamedModelOptions,
  type OpenTelemetryOptions,
  type RouteOptions,
  type ToolOptions,
  type ToolReturn,
} from "./capabilities/index.ts";
export {
  auditLog,
  getRunContext,
  memoryStore,
  openRuntime,
  openStore,
  sha256,
  type MemoryStoreOptions,
  type OpenStoreOptions,
  type RunRetry,
  type RuntimeOptions,
  type StoreAddress,
} from "./runtime/index.ts";
export {
  structuredOutput,
  type StructuredOutput,
  type StructuredOutputOptions,
} from "./structured-output.ts";

/** Hooks of the tool gate, timed by the machine's clock. */
export function toolHooks(options: Partial<ToolHooksOptions> = {}): ToolHooks {
  return new ToolHooks({ clock: systemClock, ...options });
}

export interface SoloAgentOptions extends Omit<ModelAgentOptions, "model"> {
  /** Of an AI SDK provider, by its name (`"anthropic/claude-sonnet-5"`), or one of your own. */
  readonly model: ModelLike;
}

/** An agent that thinks by ReAct and works alone: one model, its tools, one answer. */
export function soloAgent(options: SoloAgentOptions): Agent {
  return soloAgentOf({ ...options, model: toModel(options.model) });
}
