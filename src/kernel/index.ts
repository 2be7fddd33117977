/** The public contracts of Reeve, as `reeve/kernel`. The folders below depend on each other in this order. */

// Values without dependencies: ids, JSON, clock, errors with codes.
export type { CancelSignal, MinimalSignal } from "./base/cancel-signal.ts";
export type { Clock } from "./base/clock.ts";
export { describeValue } from "./base/describe-value.ts";
export { type ErrorKind, errorKinds, type ErrorPolicy, mayBeAnsweredElsewhere } from "./base/error-kind.ts";
export { escapeMarkup } from "./base/escape-markup.ts";
export { type Failure, Fault, type FaultOptions } from "./base/fault.ts";
export {
  modelErrorKind,
  modelFaultCode,
  type FaultCode,
  type ModelFaultCode,
  type Retry,
  type SubclassCode,
} from "./base/fault-code.ts";
export { deepFreeze, type DeepReadonly } from "./base/frozen.ts";
export type { Hash } from "./base/hash.ts";
export type { IdSource } from "./base/id-source.ts";
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
} from "./base/identity.ts";
export {
  assertJson,
  assertMadeJson,
  canonicalJson,
  copyJson,
  isJson,
  jsonText,
  sealJson,
  sealMadeJson,
  setMember,
} from "./base/json.ts";
export { contentThreshold, isLongText, longTextHash } from "./base/long-text.ts";
export { JsonDigest } from "./base/json-digest.ts";
export { nearestJson } from "./base/json-safe-copy.ts";
export type { JsonObject, JsonValue } from "./base/json-value.ts";
export type { Guest, Lifetime } from "./base/lifetime.ts";
export { andThen, attempt, type MaybePromise } from "./base/maybe-promise.ts";
export { addUsd, fromNanoUsd, toNanoUsd, toNanoUsdLimit } from "./base/money.ts";
export { nearestName } from "./base/nearest-name.ts";
export * from "./base/utc-day.ts";
export * from "./base/option-check.ts";
export type { Random } from "./base/random.ts";
export { readProperty } from "./base/read-property.ts";
export {
  formatIssue,
  type Infer,
  type JsonSchema,
  type Schema,
  type SchemaIssue,
  type StandardResult,
  type StandardSchema,
} from "./base/schema.ts";
export { withoutSecrets, withoutSecretsIn } from "./base/secret-text.ts";
export type { CompilePattern, PatternUse, TextPattern, TextSpan } from "./base/text-pattern.ts";

// Typed faults, cancellation and retries.
export * from "./errors/budget-exhausted-error.ts";
export {
  CancellationError,
  type CancellationOptions,
  type CancellationStatus,
} from "./errors/cancellation-error.ts";
export { CancellationToken, type CancelListener } from "./errors/cancellation-token.ts";
export { type ClassifiedError, classifyError, type ClassifyErrorOptions } from "./errors/classify-error.ts";
export {
  afterPerforming,
  MiddlewareTermination,
  performedBefore,
  type TerminationOptions,
} from "./errors/middleware-termination.ts";
export { RetryPolicy } from "./errors/retry-policy.ts";
export * from "./errors/retry-settings.ts";
export { reviveFault } from "./errors/revive-fault.ts";
export { stopsTask } from "./errors/stopping-fault.ts";

// Messages, models, prices and usage.
export { findUnpaired } from "./messages/call-pairs.ts";
export { callSettings, readToolChoice, samplingNames, type CallSettings } from "./messages/call-settings.ts";
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
} from "./messages/chat-message.ts";
export * from "./messages/content.ts";
export type { Delta } from "./messages/delta.ts";
export type { LlmReply } from "./messages/llm-reply.ts";
export type { Message, MessageSender, ReplyAddress } from "./messages/message.ts";
export type * from "./messages/model.ts";
export { mergeModelTimeouts, modelTimeouts, type ModelTimeouts } from "./messages/model-timeouts.ts";
export type { ModelPrice, PriceQuery, PriceTable } from "./messages/price-table.ts";
export { priceUsage } from "./messages/price-usage.ts";
export { finishReasonOf, type FinishReason, type StopReason } from "./messages/stop-reason.ts";
export { isSummary, summaryMessage, summaryOf } from "./messages/summary-message.ts";
export type { ToolCall } from "./messages/tool-call.ts";
export type { ToolResult } from "./messages/tool-result.ts";
export { Transcript } from "./messages/transcript.ts";
export { addUsage, noUsage, totalTokens, type Usage } from "./messages/usage.ts";

// Budgets, headcount, ledger and priorities.
export * from "./limits/allotment.ts";
export { copyHeadcount, seatHeadcount } from "./limits/apply-headcount.ts";
export { bookLedger } from "./limits/apply-ledger.ts";
export type { Budget, BudgetVerdict } from "./limits/budget.ts";
export {
  executionBudget,
  type ExecutionBudget,
  tightenBudget,
  unlimitedBudget,
} from "./limits/execution-budget.ts";
export * from "./limits/headcount.ts";
export { HistoryRetention, parseHistoryRetention } from "./limits/history-retention.ts";
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
} from "./limits/ledger.ts";
export { formatPriority, parsePriority, priorities, Priority, type PriorityName } from "./limits/priority.ts";
export { describeRefusal } from "./limits/refused-seat.ts";
export type { RunSnapshot } from "./limits/run-snapshot.ts";
export { defaultSpawnBudget, spawnBudget, type SpawnBudget } from "./limits/spawn-budget.ts";
export * from "./limits/spending-caps.ts";
export { boundOf, isPriced, largestOutput } from "./limits/reservation-bound.ts";
export { stepHeadcount } from "./limits/step-headcount.ts";
export { fitsInFull, stepLedger } from "./limits/step-ledger.ts";
export {
  type ChildOptions,
  type RootOptions,
  Supervision,
  type SupervisionJson,
} from "./limits/supervision.ts";
export { spendOfTopUp } from "./limits/top-up.ts";
export * from "./limits/usage-delta.ts";
export { clearTally } from "./limits/usage-tally.ts";

// Runs, tasks and steps, and how they end.
export * from "./run/approval.ts";
export type { AskOutcome } from "./run/ask-outcome.ts";
export type { GuardrailDecision, GuardrailStage, OnGuardrailError } from "./run/guardrail-decision.ts";
export type { DrainMode, InputQueue } from "./run/input-queue.ts";
export * from "./run/open-approval.ts";
export { missingRun } from "./run/missing-run.ts";
export { outcomeStatus } from "./run/outcome-status.ts";
export type { Resolution } from "./run/resolution.ts";
export type { ContextFactory, RunFacts, RunFactsStorage } from "./run/run-facts.ts";
export { type ChildMetaOptions, RunMeta, type StandaloneOptions } from "./run/run-meta.ts";
export type { CompactionSkip } from "./run/compaction-skip.ts";
export { platformOf, platforms, type Channel, type Platform } from "./run/channel.ts";
export { nextRunId, type NextRun } from "./run/next-run.ts";
export { runKinds, startsLater, turnKey, type RunKind, type RunRecord } from "./run/run-record.ts";
export { longestTitle, runTitle } from "./run/run-title.ts";
export { changedResult } from "./run/changed-result.ts";
export type { RunStep, RunToolCall } from "./run/run-step.ts";
export { type UnreportedSpend, type RunResult, type RunStatus, runStatuses } from "./run/run-result.ts";
export { nothingSpent, type RunSpend } from "./run/run-spend.ts";
export * from "./run/run-standing.ts";
export * from "./run/all-runs.ts";
export * from "./run/run-summary.ts";
export { isInScope, longestName, nameProblem, type TenantScope } from "./run/tenant-scope.ts";
export { sameCaller } from "./run/same-caller.ts";
export * from "./run/schedule.ts";
export * from "./run/fire-decision.ts";
export * from "./run/heartbeat.ts";
export type * from "./run/spawn-options.ts";
export { branchScope, type StepAddress, stepAt, type StepScope } from "./run/step-address.ts";
export {
  assertOutcome,
  digestOf,
  sealedOutcome,
  type StepDigest,
  type StepKind,
  type StepOpening,
  type TokenCount,
  type StepOutcome,
  type StepRecord,
} from "./run/step-record.ts";
export type { InheritedRequest, RequestOfRun, RequestOfTask } from "./run/inherited-request.ts";
export type { TaskChange, TaskRecord } from "./run/task.ts";
export type { Interruption, OnParentEnd, OnPause, TaskOutcome } from "./run/task-outcome.ts";
export { isFinal, type TaskStatus, taskStatuses } from "./run/task-status.ts";
export type { WaitContext } from "./run/wait-context.ts";

// The events of a run's log.
export type { AgentEvents } from "./events/agent-event.ts";
export type { ApprovalEvents } from "./events/approval-event.ts";
export type { ArchitectureEvents } from "./events/architecture-event.ts";
export type { BudgetEvents } from "./events/budget-event.ts";
export { assertEmittable, type EmittableEvent, type TurnEvent } from "./events/emittable-event.ts";
export type { EngineEvents, UserMessageSource } from "./events/engine-event.ts";
export { type Event, type EventData, eventDraft, type EventDraft, type EventType } from "./events/event.ts";
export { AnsweringTasks } from "./events/answering-tasks.ts";
export { chainHead, type ChainLink, chainStart } from "./events/event-chain.ts";
export type { FlowEvents } from "./events/flow-event.ts";
export type { GuardrailEvents } from "./events/guardrail-event.ts";
export type { RunEvents } from "./events/run-event.ts";
export type { SpawnEvents } from "./events/spawn-event.ts";
export type { TaskEvents } from "./events/task-event.ts";

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
} from "./sessions/interrupted-message.ts";
export { continuesFrom, rebaseBatch } from "./sessions/rebase-batch.ts";
export * from "./messages/message-size.ts";
export * from "./messages/thinking-level.ts";
export { compactionProblem } from "./sessions/compaction-check.ts";
export * from "./sessions/session-context.ts";
export type * from "./sessions/session-entry.ts";
export { sessionSettings, type SessionSettings } from "./sessions/session-settings.ts";
export { checkEntry, isChatMessage, isToolOutput } from "./sessions/entry-check.ts";
export { leafOf, PathCollector, pathTo, rootLeafOf } from "./sessions/session-path.ts";
export { sessionTitle } from "./sessions/session-title.ts";
export type * from "./sessions/sessions.ts";
export { userEntry, type UserEntryFields } from "./sessions/user-entry.ts";

// What a store must implement.
export type { Commit, Erasure } from "./stores/commit.ts";
export type { ContentOwner, Contents } from "./stores/contents.ts";
export { eventTypes } from "./stores/erased-event.ts";
export { eraseCommit } from "./stores/erasure.ts";
export type { EventLog, LogVerdict, TailOptions } from "./stores/event-log.ts";
export * from "./stores/inbox.ts";
export { inboxSettings, redeliveryDelayMs, type InboxSettings } from "./stores/inbox-settings.ts";
export type { CollectOptions, Creation, Journal, SingleFlight, Submission } from "./stores/journal.ts";
export * from "./stores/lease.ts";
export type { Mail, MailBody, Mailbox, PlacedMail } from "./stores/mailbox.ts";
export * from "./stores/records.ts";
export type { Store } from "./stores/store.ts";
export type { StoreChange } from "./stores/store-change.ts";
export type { TopicChange, Topics } from "./stores/topics.ts";
export * from "./stores/usage-totals.ts";

// Agents, architectures, tools, the run context and the runtime.
export type { AgentContext } from "./agent/agent-context.ts";
export type { AgentPhase } from "./sessions/agent-phase.ts";
export type { AgentResolver } from "./agent/agent-resolver.ts";
export { agentSession, type AgentSession } from "./agent/agent-session.ts";
export type { ReplyReasons } from "./messages/reply-reasons.ts";
export type { Architecture } from "./agent/architecture.ts";
export type { AuditEntry, AuditLog, AuditReadOptions } from "./agent/audit-log.ts";
export type { CallPath, EventObserver, ObservedTask } from "./agent/call-path.ts";
export type {
  CompactedTranscript,
  Compaction,
  CompactionRequest,
  CompactionResult,
  CompactionStep,
  SessionCompactionOutcome,
  SessionCompactionRequest,
  SessionCompactionStep,
  SkippedCompaction,
} from "./agent/compaction.ts";
export type { CompactionGoal, CompactionStrategy } from "./agent/compaction-strategy.ts";
export type * from "./agent/dependencies.ts";
export type * from "./agent/engine.ts";
export type { EphemeralSource } from "./agent/ephemeral-source.ts";
export type * from "./agent/extension.ts";
export type * from "./agent/extension-context.ts";
export type * from "./events/extension-event.ts";
export type { GuardedCall, Guardrail, GuardrailContext } from "./agent/guardrail.ts";
export type { HistoryKey, HistoryProvider } from "./agent/history-provider.ts";
export {
  type Hook,
  type HookCallback,
  HookEvent,
  type HookPayload,
  type HookPayloads,
  type HookSet,
  type Hooks,
} from "./events/hook-event.ts";
export type { HookRegistry, PreToolVerdict } from "./agent/hook-registry.ts";
export { modelFor, type HostedAgent } from "./agent/hosted-agent.ts";
export type {
  Episode,
  Fact,
  Memory,
  MemoryBlock,
  MemoryScope,
  MemoryWrite,
  Recall,
  RecallQuery,
} from "./agent/memory.ts";
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
} from "./agent/middleware.ts";
export * from "./agent/approval-need.ts";
export * from "./agent/permissions.ts";
export type { InstructionsSource, PromptQuery, PromptSource } from "./agent/prompt-source.ts";
export type { ResourceSource } from "./agent/resource-source.ts";
export type * from "./agent/llm-request.ts";
export type * from "./agent/run-context.ts";
export type * from "./agent/task-report.ts";
export {
  checkChildRequest,
  checkSpawnOptions,
  spawnChildNames,
  spawnOptionNames,
} from "./agent/spawn-check.ts";
export { answerIfLive } from "./agent/answer-approval.ts";
export type {
  EventOptions,
  ForkOptions,
  ReceivedInput,
  RunHandle,
  ToolResultOptions,
  WaitingResult,
} from "./agent/run-handle.ts";
export * from "./agent/runtime.ts";
export { checkSkill, type Skill } from "./agent/skill.ts";
export type { Attributes, Metric, Span, SpanOptions, Telemetry } from "./agent/telemetry.ts";
export type { Tool, ToolConcurrency, ToolContext, ToolOrigin, ToolRisk } from "./agent/tool.ts";
export type * from "./agent/tool-gate.ts";
export type { ToolHost } from "./agent/tool-host.ts";
export type { HandledInput, Turn, TurnOpening, TurnPlan } from "./agent/turn.ts";
export type { MalformedCall, RepairedCall, RepairToolCall } from "./agent/tool-repair.ts";
export type { EndedTurn, PrepareStep, StopCondition, TurnChanges, TurnStart } from "./agent/turn-control.ts";
export type * from "./agent/session-api.ts";
