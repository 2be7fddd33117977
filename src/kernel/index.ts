export type { AgentContext } from "./agent-context.ts";
export type { AgentEvents } from "./agent-event.ts";
export type { AgentPhase } from "./agent-phase.ts";
export { agentSession, type AgentSession } from "./agent-session.ts";
export { modelFor, type Agent } from "./agent.ts";
export type { ApprovalEvents } from "./approval-event.ts";
export {
  isApprovalDecision,
  type ApprovalDecision,
  type ApprovalRequest,
  type PersonQuestion,
} from "./approval.ts";
export type { ArchitectureEvents } from "./architecture-event.ts";
export type { Architecture } from "./architecture.ts";
export type { AuditEntry, AuditLog, AuditReadOptions } from "./audit-log.ts";
export { type Blobs, blobThreshold } from "./blobs.ts";
export { bookLedger } from "./book-ledger.ts";
export type { BudgetEvents } from "./budget-event.ts";
export {
  type BudgetDimension,
  BudgetExhaustedError,
  type BudgetExhaustion,
} from "./budget-exhausted-error.ts";
export type { Budget, BudgetVerdict } from "./budget.ts";
export { findUnpaired } from "./call-pairs.ts";
export type { CallPath, EventObserver, ObservedTask } from "./call-path.ts";
export type { CancelSignal, MinimalSignal } from "./cancel-signal.ts";
export {
  CancellationError,
  type CancellationOptions,
  type CancellationStatus,
} from "./cancellation-error.ts";
export { CancellationToken, type CancelListener } from "./cancellation-token.ts";
export {
  assistantMessage,
  type AssistantMessage,
  type ChatMessage,
  messageText,
  systemMessage,
  type SystemMessage,
  toolCallsOf,
  toolMessage,
  toolResultPart,
  type ToolMessage,
  userMessage,
  type UserMessage,
} from "./chat-message.ts";
export { type ClassifiedError, classifyError, type ClassifyErrorOptions } from "./classify-error.ts";
export type { Clock } from "./clock.ts";
export type { Commit } from "./commit.ts";
export type { CompactionGoal, CompactionStrategy } from "./compaction-strategy.ts";
export type {
  Compacted,
  Compaction,
  CompactionRequest,
  CompactionResult,
  CompactionStep,
} from "./compaction.ts";
export {
  type AssistantPart,
  type ContentPart,
  type FilePart,
  type ImagePart,
  type MediaSource,
  type OpaquePart,
  type ProviderMetadata,
  type ReasoningPart,
  textOf,
  type TextPart,
  type ToolCallPart,
  type ToolOutput,
  type ToolResultPart,
  type UserPart,
} from "./content.ts";
export type { Delta } from "./delta.ts";
export { describeValue } from "./describe-value.ts";
export type { Dependencies, ExtraToolResult, FastFlags, WorkerBrief, WorkerInput } from "./dependencies.ts";
export type { EngineEvents } from "./engine-event.ts";
export type { Engine, LeftRun, RunHost } from "./engine.ts";
export type { EphemeralSource } from "./ephemeral-source.ts";
export { eraseCommit, type Erasure } from "./erasure.ts";
export { type ErrorKind, errorKinds, type ErrorPolicy, mayBeAnsweredElsewhere } from "./error-kind.ts";
export { chainHead, type ChainLink, chainStart } from "./event-chain.ts";
export type { EventLog, LogVerdict, TailOptions } from "./event-log.ts";
export { type Event, type EventData, eventDraft, type EventDraft, type EventType } from "./event.ts";
export { executionBudget, type ExecutionBudget, tightenBudget, unlimitedBudget } from "./execution-budget.ts";
export type { ContextUsage, ExtensionContext, ModelRegistry, SessionView } from "./extension-context.ts";
export type {
  ExtensionEvent,
  ExtensionEvents,
  ExtensionEventType,
  ExtensionResult,
} from "./extension-event.ts";
export type { Command, Extension, ExtensionApi, ExtensionHandler } from "./extension.ts";
export type { FaultCode, ModelFaultCode, Retry, SubclassCode } from "./fault-code.ts";
export { type Failure, Fault, type FaultOptions } from "./fault.ts";
export type { FlowEvents } from "./flow-event.ts";
export { deepFreeze, type DeepReadonly } from "./frozen.ts";
export type { GuardrailEvents } from "./guardrail-event.ts";
export type {
  GuardedCall,
  Guardrail,
  GuardrailContext,
  GuardrailDecision,
  GuardrailStage,
} from "./guardrail.ts";
export type { Hash } from "./hash.ts";
export {
  type Headcount,
  type HeadcountCommand,
  type HeadcountOutcome,
  type HeadcountStep,
  type HeadcountTask,
  holdsSeat,
  openHeadcount,
  type RefusalReason,
  type SeatChange,
  type SeatHolder,
  seatHolders,
  type SeatStatus,
} from "./headcount.ts";
export type { HistoryKey, HistoryProvider } from "./history-provider.ts";
export { HistoryRetention, parseHistoryRetention } from "./history-retention.ts";
export {
  type HookCallback,
  HookEvent,
  type HookPayload,
  type HookPayloads,
  type Hooks,
} from "./hook-event.ts";
export type { HookRegistry, PreToolVerdict } from "./hook-registry.ts";
export type { IdSource } from "./id-source.ts";
export {
  agentIdOf,
  type AgentAddress,
  type AgentId,
  agentNameOf,
  conversationOf,
  forkSessionId,
  formatAgentId,
  formatRunId,
  formatSessionId,
  formatTaskId,
  formatTopicId,
  isUnnamedSession,
  longestRunId,
  parseAgentId,
  parseRunId,
  parseSessionId,
  parseTaskId,
  parseTopicId,
  rootTaskId,
  type RunId,
  type SessionId,
  sessionWithin,
  type TaskId,
  type TopicAddress,
  type TopicId,
  unnamedBy,
  unnamedSessionId,
} from "./identity.ts";
export {
  lineOf,
  type Delivery,
  type Inbox,
  type InboxChange,
  type MailMode,
  type MailQuery,
  type NextMail,
  type TaskInbox,
} from "./inbox.ts";
export type { DrainMode, InputQueue } from "./input-queue.ts";
export type { Creation, Journal, RunHistory, RunRecord, SingleFlight, Submission } from "./journal.ts";
export {
  assertJson,
  assertMadeJson,
  canonicalJson,
  copyJson,
  isJson,
  type JsonObject,
  jsonText,
  type JsonValue,
  sealJson,
  sealMadeJson,
  setMember,
} from "./json.ts";
export { JsonDigest } from "./json-digest.ts";
export type { ClaimOptions, HostedAgent, Lease, Leases, Rest } from "./lease.ts";
export type { Guest, Lifetime } from "./lifetime.ts";
export {
  type Account,
  type CostLabel,
  type CostLine,
  type Decision,
  type Exhaustion,
  type Ledger,
  type LedgerCommand,
  type LedgerOutcome,
  type LedgerStep,
  openLedger,
  type Overrun,
  type ReportedSpend,
  type Reservation,
  type ReserveCommand,
  type Spend,
  type SpendCaps,
  type SpendDimension,
  type TopUp,
  type UnknownPrice,
} from "./ledger.ts";
export { mailSettings, redeliveryDelayMs, type MailSettings } from "./mail-settings.ts";
export type { Mail, MailBody, Mailbox, PlacedMail } from "./mailbox.ts";
export type {
  Episode,
  Fact,
  Memory,
  MemoryBlock,
  MemoryScope,
  MemoryWrite,
  Recall,
  RecallQuery,
} from "./memory.ts";
export type { Message, MessageSender, ReplyAddress } from "./message.ts";
export {
  afterPerforming,
  MiddlewareTermination,
  performedBefore,
  type TerminationOptions,
} from "./middleware-termination.ts";
export type {
  AgentMiddleware,
  AgentRunContext,
  ChatContext,
  ChatMiddleware,
  DeltaFilter,
  UpdateFilter,
  FunctionContext,
  FunctionMiddleware,
  Middleware,
  MiddlewareFunction,
  StreamedDelta,
} from "./middleware.ts";
export type {
  Model,
  ModelCallOptions,
  ModelChoice,
  ModelRequest,
  ModelResponse,
  ModelStreamPart,
  ProviderOptions,
  ReportedUsage,
  ResponseFormat,
  ToolChoice,
  ToolSpec,
} from "./model.ts";
export { addUsd, fromNanoUsd, toNanoUsd, toNanoUsdLimit } from "./money.ts";
export type {
  ApprovalMemory,
  PermissionDecision,
  PermissionMode,
  Permissions,
  RememberedApproval,
} from "./permissions.ts";
export type { ModelPrice, PriceQuery, PriceTable } from "./price-table.ts";
export { priceUsage } from "./price-usage.ts";
export { formatPriority, parsePriority, priorities, Priority, type PriorityName } from "./priority.ts";
export type { PromptQuery, PromptSource } from "./prompt-source.ts";
export type { Random } from "./random.ts";
export { describeRefusal } from "./refused-seat.ts";
export type { Resolution } from "./resolution.ts";
export type { ResourceSource } from "./resource-source.ts";
export { RetryPolicy } from "./retry-policy.ts";
export { requireRetryNumbers, retryDelayMs, retrySettings, type RetrySettings } from "./retry-settings.ts";
export { reviveFault } from "./revive-fault.ts";
export type {
  AskOutcome,
  Branch,
  BranchResults,
  Interruption,
  LlmReply,
  LlmRequest,
  OnParentEnd,
  OnPause,
  ParallelOptions,
  RunContext,
  SpawnOptions,
  SpawnOutcome,
  StepContext,
  TaskHandle,
  TaskOutcome,
  TaskReport,
  ToolsOptions,
} from "./run-context.ts";
export type { RunEvents } from "./run-event.ts";
export type { RunFacts, RunFactsStorage } from "./run-facts.ts";
export type { RunHandle } from "./run-handle.ts";
export { type ChildMetaOptions, RunMeta, type StandaloneOptions } from "./run-meta.ts";
export { outcomeStatus } from "./outcome-status.ts";
export { type LostSpend, type RunResult, type RunStatus, runStatuses } from "./run-result.ts";
export type { RunPage, RunQuery, RunStanding, RunSummary } from "./run-summary.ts";
export type { Runtime, SubmitOptions } from "./runtime.ts";
export { goesOnFrom, saidAfter } from "./said-place.ts";
export { indexInSaid, saidEntries, saidEntry, saidId, stoppedStem, type Said } from "./said.ts";
export {
  formatIssue,
  type Infer,
  type JsonSchema,
  type Schema,
  type SchemaIssue,
  type StandardResult,
  type StandardSchema,
} from "./schema.ts";
export { copyHeadcount, seatHeadcount } from "./seat-headcount.ts";
export { withoutSecrets } from "./secret-text.ts";
export { contextMessages, sessionContext, type SessionContext, type ShownEntry } from "./session-context.ts";
export type { EntryVisibility, SessionEntry } from "./session-entry.ts";
export { leafOf, pathTo, rootLeafOf } from "./session-path.ts";
export type { PlacedEntry, SessionChange, SessionQuery, Sessions, SessionSummary } from "./sessions.ts";
export { checkSkill, type Skill } from "./skill.ts";
export { defaultSpawnBudget, spawnBudget, type SpawnBudget } from "./spawn-budget.ts";
export type { SpawnEvents } from "./spawn-event.ts";
export type { Standing } from "./standing.ts";
export { branchScope, type StepAddress, stepAt, type StepScope } from "./step-address.ts";
export { stepHeadcount } from "./step-headcount.ts";
export { stepLedger } from "./step-ledger.ts";
export {
  assertOutcome,
  digestOf,
  sealedOutcome,
  type StepDigest,
  type StepKind,
  type StepOpening,
  type StepOutcome,
  type StepRecord,
} from "./step-record.ts";
export type { StopReason } from "./stop-reason.ts";
export { stopsTask } from "./stopping-fault.ts";
export type { Store } from "./store.ts";
export { isSummary, summaryMessage, summaryOf } from "./summary-message.ts";
export { type ChildOptions, type RootOptions, Supervision, type SupervisionJson } from "./supervision.ts";
export type { TaskEvents } from "./task-event.ts";
export { isFinal, type TaskStatus, taskStatuses } from "./task-status.ts";
export type { TaskChange, TaskRecord } from "./task.ts";
export type { Attributes, Metric, Span, SpanOptions, Telemetry } from "./telemetry.ts";
export { assertTold, type ToldEvent, type TurnEvent } from "./told-event.ts";
export type { ApprovalHandler, GatedCall, GateVerdict, SettledCall, ToolGate } from "./tool-gate.ts";
export type { ToolCall, ToolHost } from "./tool-host.ts";
export type { Tool, ToolConcurrency, ToolContext, ToolResult, ToolRisk } from "./tool.ts";
export { spendOfTopUp } from "./top-up.ts";
export type { TopicChange, Topics } from "./topics.ts";
export { Transcript } from "./transcript.ts";
export type { Turn, TurnOpening, TurnPlan } from "./turn.ts";
export { addUsage, noUsage, totalTokens, type Usage } from "./usage.ts";
export { userEntry, type UserEntryFields } from "./user-entry.ts";
