import {
  soloAgent as soloAgentOf,
  ToolHooks,
  type SoloAgentOptions as ModelAgentOptions,
  type ToolHooksOptions,
} from "./agents/index.ts";
import { priceCatalog, toModel, type ModelLike } from "./capabilities/index.ts";
import type { Agent, Runtime } from "./kernel/index.ts";
import { openRuntime as openBareRuntime, systemClock, type RuntimeOptions } from "./runtime/index.ts";

export {
  CostTracker,
  ExecutionTracker,
  HookManager,
  RunLogger,
  SpawnTracker,
  type Amounts,
  type Cost,
  type ExecutionTrackerOptions,
  type Hold,
  type HookFailure,
  type HookManagerOptions,
  type LoggedMoment,
  type Reserving,
  type RunLoggerOptions,
  type Spending,
  composeGate,
  GuardedRun,
  inMemoryApprovals,
  permissions,
  estimateTokens,
  modelBudget,
  PromptWindow,
  react,
  selectiveToolCalls,
  sessionCompaction,
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
  tokenBudget,
  toolResultTruncation,
  truncation,
  usualFileUse,
  withGuardrailModels,
  type FileUse,
  type ModelBudgetOptions,
  type ReAct,
  type ReActDependencies,
  type ReActOptions,
  type SelectiveToolCallsOptions,
  type SessionCompactionOptions,
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
  errorResult,
  fallback,
  fileResult,
  imageResult,
  namedModel,
  openTelemetry,
  priceCatalog,
  route,
  textResult,
  tool,
  toModel,
  withSettings,
  type AiSdkModel,
  type FallbackOptions,
  type MediaData,
  type MediaOptions,
  type ModelLike,
  type ModelName,
  type ModelSettings,
  type NamedModelOptions,
  type OpenTelemetryOptions,
  type PriceCatalogOptions,
  type PriceOverride,
  type RouteOptions,
  type ToolBody,
  type ToolOptions,
  type ToolProgress,
  type ToolReturn,
  type UsdPerMillion,
} from "./capabilities/index.ts";
export { BudgetExhaustedError, Fault, HookEvent, Priority, RetryPolicy } from "./kernel/index.ts";
export {
  contextMessages,
  isSummary,
  sessionContext,
  summaryMessage,
  summaryOf,
  type SessionContext,
  type ShownEntry,
} from "./kernel/index.ts";
export {
  auditLog,
  getRunContext,
  memoryStore,
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

/** Opens a runtime on a store and goes on with whatever was left there. Prices are those of `priceCatalog()` unless told. */
export function openRuntime(options: RuntimeOptions = {}): Promise<Runtime> {
  return openBareRuntime({ prices: priceCatalog(), ...options });
}

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
