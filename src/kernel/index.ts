/**
 * The exports of the kernel for the other layers. `src/entries/kernel.ts` lists those that are public as
 * `reeve/kernel`. The folders below are listed in the order in which they depend on each other.
 */

// Values without dependencies: ids, JSON, clock, errors with codes.
export type { CancelSignal } from "./base/cancel-signal.ts";
export type { Clock, EventLoop, Hash, IdSource, Random } from "./base/sources.ts";
export { describeValue } from "./base/describe-value.ts";
export {
  type ErrorKind,
  errorKinds,
  type Failure,
  Fault,
  type FaultCode,
  isFaultCode,
  mayBeAnsweredElsewhere,
  modelErrorKind,
  modelFaultCode,
  type Retry,
  type SubclassCode,
} from "./base/fault.ts";
export {
  type CompilePattern,
  contentThreshold,
  escapeMarkup,
  isLongText,
  longTextHash,
  type PatternUse,
  type TextPattern,
  type TextSpan,
  withoutSecrets,
  withoutSecretsIn,
} from "./base/text.ts";
export { describeDifference, jsonDifference, type JsonDifference } from "./base/json-difference.ts";
export {
  assertJson,
  assertMadeJson,
  canonicalJson,
  copyJson,
  deepestJson,
  deepFreeze,
  type DeepReadonly,
  isJson,
  JsonDigest,
  jsonText,
  sealJson,
  sealMadeJson,
  setMember,
} from "./base/json.ts";
export {
  agentIdOf,
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
  type TopicId,
  unnamedBy,
  unnamedSessionId,
  usageNameOf,
} from "./base/identity.ts";
export { nearestJson } from "./base/json-safe-copy.ts";
export {
  messageNameKind,
  requireMessage,
  signalTable,
  updateTable,
  type PromiseOutcome,
  type Query,
  type ReceivedUpdate,
  type RunPromise,
  type RunTarget,
  type Signal,
  type SignalOptions,
  type Update,
  type UpdateOptions,
  type UpdateReply,
  type WaitForPromiseOptions,
  type WaitForSignalOptions,
  type WaitForUpdateOptions,
} from "./run/run-messages.ts";
export { readDuration, readWait, timeOfDate, type Duration } from "./base/duration.ts";
export type { GivenAsJson, JsonObject, JsonValue, RecordedValue, Serializable } from "./base/json-value.ts";
export type { Guest, Lifetime } from "./base/lifetime.ts";
export { andThen, attempt, type MaybePromise } from "./base/maybe-promise.ts";
export { addUsd, fromNanoUsd, toNanoUsd, toNanoUsdLimit } from "./base/money.ts";
export * from "./base/utc-day.ts";
export { visibleLine, visibleText } from "./base/visible-text.ts";
export * from "./base/read-property.ts";
export * from "./base/json-counter.ts";
export * from "./base/option-table.ts";
export {
  formatIssue,
  type Infer,
  type InferInput,
  type JsonSchema,
  type Schema,
  type SchemaCheck,
  type StandardResult,
  type StandardSchema,
} from "./base/schema.ts";

// Typed faults, cancellation and retries.
export * from "./errors/budget-exhausted-error.ts";
export {
  CancellationError,
  type CancellationStatus,
  CancellationToken,
  type CancelListener,
} from "./errors/cancellation-token.ts";
export { type ClassifiedError, classifyError } from "./errors/classify-error.ts";
export { FatalError, isMarkedFinal } from "./errors/fatal-error.ts";
export { afterPerforming, MiddlewareTermination, performedBefore } from "./errors/middleware-termination.ts";
export { RetryPolicy } from "./errors/retry.ts";
export * from "./errors/retry.ts";
export { reviveFault, stopsTask } from "./errors/revive-fault.ts";

// Messages, models, prices and usage.
export { findUnpaired, type ToolCall, type ToolResult } from "./messages/tool-call.ts";
export {
  callSettingKinds,
  ofSettings,
  callSettings,
  type CallSettings,
  mergeModelTimeouts,
  modelTimeouts,
  type ModelTimeouts,
  readToolChoice,
  samplingNames,
} from "./messages/call-settings.ts";
export {
  assistantMessage,
  type AssistantMessage,
  type ChatMessage,
  isSummary,
  messageText,
  summaryMessage,
  summaryOf,
  systemMessage,
  toolCallsOf,
  toolMessage,
  type ToolMessage,
  toolResultPart,
  userMessage,
  type UserMessage,
} from "./messages/chat-message.ts";
export * from "./messages/content.ts";
export { deltaTypes, type Delta } from "./messages/delta.ts";
export { boundDocuments, boundImage, isTextDocument } from "./messages/input-bound.ts";
export { boundProviderTools, type ProviderToolBound } from "./messages/provider-tools.ts";
export { JoinedDelta } from "./messages/joined-delta.ts";
export {
  type FinishReason,
  finishReasonOf,
  type LlmReply,
  type ReplyReasons,
  type StopReason,
} from "./messages/llm-reply.ts";
export type { Message, MessageSender } from "./messages/message.ts";
export type * from "./messages/model.ts";
export {
  addUsage,
  type ModelPrice,
  noUsage,
  type PriceQuery,
  type PriceTable,
  totalTokens,
  type Usage,
} from "./messages/usage.ts";
export { FailedAnswerError, priceUsage } from "./messages/model.ts";
export { Transcript } from "./messages/transcript.ts";

// Budgets, headcount, ledger and priorities.
export * from "./limits/cap-share.ts";
export { copyHeadcount, seatHeadcount, stepHeadcount } from "./limits/apply-headcount.ts";
export { bookLedger, fitsInFull, stepLedger } from "./limits/apply-ledger.ts";
export {
  type Budget,
  type BudgetVerdict,
  defaultSpawnBudget,
  spawnBudget,
  type SpawnBudget,
} from "./limits/budget.ts";
export { type ExecutionBudget, smallerBudget, unlimitedBudget } from "./limits/budget-limits.ts";
export { executionBudget, tightenBudget } from "./limits/execution-budget.ts";
export * from "./limits/flow-control.ts";
export * from "./limits/headcount.ts";
export { HistoryRetention, parseHistoryRetention } from "./limits/history-retention.ts";
export {
  type Account,
  clearTally,
  type CostLabel,
  type CostLine,
  type Decision,
  type Exhaustion,
  type Ledger,
  type LedgerCommand,
  type LedgerOutcome,
  type LostCharge,
  nothing,
  openLedger,
  type Overrun,
  type ReportedSpend,
  type Reservation,
  type ReserveCommand,
  type Spend,
  type SpendCaps,
  type SpendDimension,
  type RaisedCaps,
  readTopUp,
  type SpendTopUp,
  type TopUp,
  type UnknownPrice,
} from "./limits/ledger.ts";
export { formatPriority, parsePriority, priorities, Priority, type PriorityName } from "./limits/priority.ts";
export { describeRefusal } from "./limits/headcount.ts";
export type { RunSnapshot } from "./limits/account.ts";
export * from "./limits/budget.ts";
export { boundOf, isPriced, largestOutput } from "./limits/reservation.ts";
export { type RootOptions, Supervision, type SupervisionJson } from "./limits/supervision.ts";
export * from "./limits/latency.ts";
export * from "./limits/likely-cost.ts";
export * from "./limits/top-up-offer.ts";
export * from "./limits/usage-delta.ts";

// Runs, tasks and steps, and how they end.
export * from "./run/approval.ts";
export {
  type AskOutcome,
  changedResult,
  type Interruption,
  type OnBudget,
  outcomeStatus,
  type RunResult,
  type RunStatus,
  runStatuses,
  type TaskOutcome,
  type UnreportedSpend,
} from "./run/run-result.ts";
export type { GuardrailDecision, GuardrailStage, OnGuardrailError, Resolution } from "./run/approval.ts";
export {
  type Channel,
  type DrainMode,
  type InputQueue,
  isInScope,
  longestName,
  nameProblem,
  type Platform,
  platformOf,
  platforms,
  RunMeta,
  sameCaller,
  type StandaloneOptions,
  type TenantScope,
} from "./run/run-meta.ts";
export * from "./run/approval.ts";
export * from "./run/approval-tables.ts";
export {
  missingRun,
  nothingSpent,
  type RunKind,
  runKinds,
  type RunRecord,
  type RunSpend,
  runTitle,
  startsLater,
  turnKey,
} from "./run/run-record.ts";
export { withFixedPlace, type ContextFactory, type RunFacts } from "./run/run-facts.ts";
export {
  assertOutcome,
  branchScope,
  digestOf,
  type RunStep,
  type RunToolCall,
  sealedOutcome,
  type StepAddress,
  stepAt,
  type StepDigest,
  type StepKind,
  type StepOpening,
  type StepOutcome,
  type StepRecord,
  type StepScope,
  type TokenCount,
} from "./run/step.ts";
export type {
  Recorded,
  RecordedRequest,
  RequestPart,
  SentFrame,
  SentRequest,
  TranscriptPiece,
} from "./run/sent-request.ts";
export type * from "./run/crash-loop.ts";
export * from "./run/run-record.ts";
export * from "./run/run-query-table.ts";
export * from "./run/run-score.ts";
export * from "./run/run-summary.ts";
export * from "./run/schedule.ts";
export * from "./run/run-meta.ts";
export type * from "./run/task-folder.ts";
export * from "./run/folder-work.ts";
export type * from "./run/spawn-options.ts";
export * from "./run/started-run.ts";
export type { InheritedRequest, RequestOfRun, RequestOfTask } from "./run/spawn-options.ts";
export { isFinal, type TaskChange, type TaskRecord, type TaskStatus } from "./run/task.ts";
export {
  assertAllowed,
  assertToolNames,
  changedTextKind,
  nameListKind,
  readAllowedChanges,
  readChanges,
  type AllowedChanges,
  type ClientTool,
  type EditedResult,
  type EditedToolResult,
  type RunChanges,
  type StoredChanges,
  type WantedChanges,
} from "./run/run-changes.ts";

// The events of a run's log.
export type { FlowEvents, UserMessageSource } from "./events/event-data.ts";
export { assertEmittable, type EmittableEvent, type TurnEvent } from "./events/emittable-event.ts";
export {
  chainHead,
  type ChainLink,
  chainStart,
  endsRun,
  type Event,
  type EventData,
  eventDraft,
  type EventDraft,
  type EventType,
} from "./events/event.ts";
export { AnsweringTasks } from "./events/answering-tasks.ts";

// Conversations, stored as trees of entries.
export {
  indexInBatch,
  batchEntries,
  batchEntry,
  batchEntryId,
  batchSource,
  stoppedStem,
  type MessageBatch,
} from "./sessions/message-batch.ts";
export {
  interruptedMessage,
  isInterruptedMessage,
  type InterruptedStatus,
} from "./sessions/session-entry.ts";
export { continuesFrom, rebaseBatch } from "./sessions/rebase-batch.ts";
export * from "./messages/chat-message.ts";
export * from "./messages/model.ts";
export { compactionProblem } from "./sessions/compaction-check.ts";
export * from "./sessions/session-context.ts";
export * from "./sessions/file-change.ts";
export type * from "./sessions/session-entry.ts";
export {
  type AgentPhase,
  sessionSettings,
  type SessionSettings,
  sessionTitle,
} from "./sessions/session-settings.ts";
export { checkEntry, isChatMessage, isToolOutput } from "./sessions/entry-check.ts";
export { leafOf, PathCollector, pathTo, rootLeafOf } from "./sessions/session-context.ts";
export type * from "./sessions/sessions.ts";
export { userEntry, type UserEntryFields } from "./sessions/user-entry.ts";

// What a store must implement.
export type { Commit, Erasure } from "./stores/commit.ts";
export type { ContentOwner, Contents, Store, StoreChange } from "./stores/store.ts";
export { eraseCommit, eventTypes } from "./stores/erasure.ts";
export type { EventLog, LogVerdict, TailOptions } from "./stores/event-log.ts";
export * from "./stores/inbox.ts";
export { inboxSettings, redeliveryDelayMs, type InboxSettings } from "./stores/inbox.ts";
export type { CollectOptions, Creation, Journal, SingleFlight, Submission } from "./stores/journal.ts";
export * from "./stores/lease.ts";
export type { Mail, MailBody, Mailbox, PlacedMail, TopicChange, Topics } from "./stores/mailbox.ts";
export * from "./stores/object-state.ts";
export * from "./stores/records.ts";
export * from "./stores/scores.ts";
export * from "./stores/usage-sum.ts";
export * from "./stores/usage-totals.ts";

// Agents, architectures, tools, the run context and the runtime.
export {
  type AgentContext,
  checkSkill,
  type EphemeralSource,
  type InstructionsSource,
  type PromptQuery,
  type PromptSource,
  type Skill,
} from "./agent/prompt-source.ts";
export { type AgentResolver, type HostedAgent, modelFor } from "./agent/hosted-agent.ts";
export { agentSession, type AgentSession } from "./agent/agent-session.ts";
export type { Architecture } from "./agent/architecture.ts";
export type {
  Attributes,
  AuditEntry,
  AuditLog,
  AuditReadOptions,
  Metric,
  Span,
  SpanOptions,
  Telemetry,
} from "./agent/telemetry.ts";
export * from "./agent/call-pipeline.ts";
export type { CallPath, EventObserver, ObservedTask } from "./agent/call-path.ts";
export type {
  CompactedTranscript,
  Compaction,
  CompactionGoal,
  CompactionResult,
  CompactionStep,
  CompactionStrategy,
  SessionCompactionOutcome,
  SessionCompactionRequest,
  SessionCompactionStep,
  SkippedCompaction,
} from "./agent/compaction.ts";
export type * from "./agent/dependencies.ts";
export type * from "./agent/engine.ts";
export type * from "./agent/extension.ts";
export type * from "./agent/extension-context.ts";
export type * from "./events/extension-event.ts";
export type { GuardedCall, Guardrail, GuardrailContext } from "./agent/guardrail.ts";
export type {
  Episode,
  Fact,
  HistoryKey,
  HistoryProvider,
  Memory,
  MemoryBlock,
  MemoryScope,
  MemoryWrite,
  Recall,
  RecallQuery,
} from "./agent/memory.ts";
export {
  type Hook,
  type HookCallback,
  HookEvent,
  type HookPayload,
  type HookPayloads,
  type HookSet,
  type Hooks,
} from "./events/hook-event.ts";
export type {
  AgentMiddleware,
  AgentRunContext,
  ChatContext,
  ChatMiddleware,
  DeltaFilter,
  FunctionContext,
  FunctionMiddleware,
  HookRegistry,
  Middleware,
  MiddlewareFunction,
  PreToolVerdict,
  StreamedDelta,
  UpdateFilter,
} from "./agent/middleware.ts";
export * from "./agent/permissions.ts";
export type * from "./agent/llm-request.ts";
export type * from "./agent/branch-options.ts";
export type * from "./agent/isolation.ts";
export type * from "./agent/run-context.ts";
export * from "./agent/hosted-workflow.ts";
export * from "./agent/object.ts";
export * from "./agent/workflow.ts";
export * from "./agent/client.ts";
export type * from "./agent/task-report.ts";
export {
  attemptTable,
  meteredTable,
  type AttemptOptions,
  type MeteredCall,
  type MeteredRequest,
  type MeteredResult,
} from "./agent/metered.ts";
export * from "./agent/foreign-program.ts";
export * from "./events/event-source.ts";
export { checkChildRequest, spawnChildTable, spawnKinds, spawnTable } from "./agent/spawn-check.ts";
export { answerIfLive } from "./agent/permissions.ts";
export {
  type EventOptions,
  type ForkOptions,
  type InputOptions,
  type QueuedInput,
  type ReceivedInput,
  type RunHandle,
  type ToolResultOptions,
  type TopUpOptions,
  type WaitingResult,
  type WithdrawOptions,
  inputTable,
  withdrawTable,
} from "./agent/run-handle.ts";
export * from "./agent/runtime.ts";
export type { Tool, ToolConcurrency, ToolContext, ToolRisk } from "./agent/tool.ts";
export type { ToolHost } from "./agent/tool-host.ts";
export type {
  EndedTurn,
  HandledInput,
  PrepareStep,
  StopCondition,
  Turn,
  TurnChanges,
  TurnOpening,
  TurnPlan,
  TurnStart,
} from "./agent/turn.ts";
export type { MalformedCall, RepairedCall, RepairToolCall } from "./agent/tool-repair.ts";
export type * from "./agent/session-api.ts";
