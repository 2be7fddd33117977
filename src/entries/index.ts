// The names that an agent program needs. docs/reference/reference.md explains each of them; src/entries/kernel.ts has the contracts
// for authors of stores, engines, models and architectures.

// With this line in an entry, TypeScript can name the types of reeve/kernel in the declarations of a program that imports
// only that entry.
export type {} from "./kernel.ts";

// Agents and calls
export { Agent, type AgentOptions } from "../assembly/agent.ts";
export { InformationAgent, OrchestratorAgent, ReActAgent, UserProxyAgent } from "../assembly/agent-kinds.ts";
export { type AgentStream } from "../assembly/agent-stream.ts";
export { type ValueResult } from "../assembly/answer-shape.ts";
export { structuredOutput, type StructuredOutput } from "../assembly/structured-output.ts";
export {
  type AgentInput,
  type ContinueOptions,
  type InformationItem,
  type InputMessage,
  type InstructionsFunction,
  type InvokeOptions,
  type JudgedLoopOptions,
  type OnApprovalHandler,
  type PartialValue,
  type ReturnOnApproval,
  type RoundState,
  type RunUntilOptions,
  type StreamOptions,
  type SubmitRunOptions,
} from "../agents/index.ts";
export { type IsolationOption, type WorktreeOptions } from "../capabilities/index.ts";
export { type AgentId, formatAgentId, type HostedAgent, type WaitingResult } from "../kernel/index.ts";

// Control of turns
export { hasToolCall, type StopHook, type StopState } from "../agents/index.ts";
export { type PrepareStep, type RepairToolCall, type StopCondition } from "../kernel/index.ts";

// Teams and flows
export { Conditional, Graph, Parallel, Sequential, type GraphOptions } from "../assembly/flows.ts";
export {
  END,
  type Merge,
  type NodeContext,
  type NodeFunction,
  reviewer,
  type Reviewer,
  START,
  type SubAgent,
  type SubAgentConfig,
  type FunctionNode,
  type GraphEdge,
  type GraphNode,
  type GraphRouter,
} from "../agents/index.ts";

// Tools
export {
  type ClientToolOptions,
  errorResult,
  fileResult,
  imageResult,
  textResult,
  tool,
  type ToolBody,
  type ToolOptions,
  type ToolProgress,
} from "../capabilities/index.ts";
export { type Tool, type ToolContext, type ToolHost, type ToolResult } from "../kernel/index.ts";

// Models and prices
export {
  type AiSdkModel,
  fallback,
  type ModelLike,
  type ModelName,
  namedModel,
  priceCatalog,
  type PriceOverride,
  route,
  toModel,
  withSettings,
} from "../capabilities/index.ts";
export { type CallSettings, type Model, type ThinkingLevel, type Usage } from "../kernel/index.ts";

// Messages
export {
  type AssistantMessage,
  type ChatMessage,
  type Message,
  type ToolMessage,
  type TopicId,
  type UserMessage,
} from "../kernel/index.ts";

// Runtime, runs and schedules
export { openClient, openRuntime } from "../assembly/open-runtime.ts";
export { RunMeta, Supervision } from "../assembly/standalone-policy.ts";
export { getRunContext, type ClientOptions, type RunRetry, type RuntimeOptions } from "../runtime/index.ts";
export {
  type AgentResolver,
  type Client,
  type Channel,
  type ContextFactory,
  type Event,
  type OpenApproval,
  type PendingApproval,
  type Platform,
  Priority,
  type RunContext,
  type RunFacts,
  type Recorded,
  type RecordedRequest,
  type RequestPart,
  type RunHandle,
  type RunResult,
  type RunSnapshot,
  type RunStep,
  type Runtime,
  type RuntimeInbox,
  type RuntimeSchedules,
  type RunToolCall,
  type Schedule,
  type ScheduleEdit,
  type ScheduleFire,
  type ScheduleOptions,
  type UsageRow,
} from "../kernel/index.ts";

// Stores
export { auditLog, memoryStore, openStore, sha256, type StoreAddress } from "../runtime/index.ts";
export { type AuditLog, type Engine } from "../kernel/index.ts";

// Sessions and memory
export {
  contextMessages,
  type HistoryProvider,
  HistoryRetention,
  type Memory,
  type ImportedSession,
  type RuntimeSessions,
  type SearchHit,
  type SearchPage,
  type SessionEntryPage,
  type SessionNode,
  type SessionTree,
  type SessionUsage,
  type UnsentInput,
} from "../kernel/index.ts";

// Compaction
export {
  modelBudget,
  selectiveToolCalls,
  sessionCompaction,
  slidingWindow,
  summarization,
  summarizeEach,
  summarizeIn,
  summarizeWith,
  type Summarizer,
  type SummaryRequest,
  tokenBudget,
  toolResultTruncation,
  truncation,
} from "../agents/index.ts";
export {
  type Compaction,
  type CompactionStrategy,
  summaryMessage,
  type TokenCounter,
} from "../kernel/index.ts";

// Budgets and seats
export {
  type Amounts,
  type Cost,
  type CostReport,
  CostTracker,
  ExecutionTracker,
  type Hold,
  SpawnTracker,
} from "../agents/index.ts";
export {
  type Budget,
  BudgetExhaustedError,
  type ExecutionBudget,
  type SpawnBudget,
} from "../kernel/index.ts";

// Permissions, guardrails, middleware and extensions
export {
  composeGate,
  GuardedRun,
  inMemoryApprovals,
  MiddlewarePipeline,
  permissions,
  type PermissionPolicy,
  type PostToolHook,
  type PreToolHook,
  type ToolHooks,
  type TrippedGuardrail,
  withGuardrailModels,
} from "../agents/index.ts";
export { toolHooks } from "../assembly/standalone-policy.ts";
export {
  type AgentMiddleware,
  type AgentRunContext,
  approvalKey,
  type ApprovalMemory,
  type ChatContext,
  type ChatMiddleware,
  type Command,
  type Extension,
  type ExtensionApi,
  type ExtensionContext,
  type ExtensionError,
  type ExtensionSurface,
  type FunctionContext,
  type FunctionMiddleware,
  type Guardrail,
  type HookRegistry,
  type Middleware,
  MiddlewareTermination,
  type Permissions,
  type RememberedApproval,
} from "../kernel/index.ts";

// What only watches
export { type HookFailure, HookManager, type LoggedMoment, RunLogger } from "../agents/index.ts";
export { openTelemetry } from "../capabilities/index.ts";
export { type HookCallback, HookEvent, type Telemetry } from "../kernel/index.ts";

// Errors and retries
export {
  CancellationError,
  CancellationToken,
  type ClassifiedError,
  classifyError,
  type ErrorKind,
  Fault,
  RetryPolicy,
} from "../kernel/index.ts";

// For an architecture of your own
export {
  type AgentContext,
  type AgentPhase,
  type AgentSession,
  type Architecture,
  type Dependencies,
  type Turn,
} from "../kernel/index.ts";
