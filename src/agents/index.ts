export {
  AgentCore,
  type AgentHome,
  type ChildOfSession,
  type ContinueOptions,
  type StreamOptions,
} from "./agent-core.ts";
export type { AgentOptions, InstructionsFunction } from "./agent-options.ts";
export { checkAgentOptions, checkKindOptions } from "./agent-check.ts";
export type { AgentSubmitOptions, InvokeOptions } from "./invoke-options.ts";
export type { OnApprovalHandler } from "./on-approval.ts";
export { readInput, type AgentInput, type AgentRequest, type ContinueRequest } from "./agent-input.ts";
export type { InputMessage } from "./calling/input-messages.ts";
export { AgentStream, type TextOptions } from "./streaming/agent-stream.ts";
export type { AnswerEnd, AnswerPart } from "./streaming/answer-part.ts";
export {
  endText,
  failureText,
  mediaUrl,
  outputValue,
  uiMessageDone,
  UiMessageEncoder,
  uiMessageFrames,
  uiMessageHeaders,
} from "./streaming/ui-message-encoder.ts";
export { AnswerFold, type AnswerFoldOptions } from "./streaming/answer-fold.ts";
export { answerParts, followAnswer, type FollowAnswerOptions } from "./streaming/follow-answer.ts";
export type { PartialValue } from "./streaming/partial-json.ts";
export type { AgentToolOptions } from "./handoffs/agent-tool.ts";
export { hasToolCall } from "./turns/turn-control.ts";
export { ConditionalFlow, type ConditionalFlowOptions } from "./flows/conditional.ts";
export { ParallelFlow, type Merge, type ParallelFlowOptions } from "./flows/parallel.ts";
export { SequentialFlow } from "./flows/sequential.ts";
export {
  END,
  START,
  type NodeContext,
  type NodeFunction,
  type WorkflowEdge,
  type WorkflowNode,
  type WorkflowRouter,
} from "./flows/workflow-graph.ts";
export { WorkflowFlow, type WorkflowFlowOptions } from "./flows/workflow.ts";
export {
  informationAgent,
  startInput,
  type InformationItem,
  type InformationOptions,
} from "./information-agent.ts";
export { orchestration, type SubAgent, type SubAgentConfig } from "./sub-agents.ts";
export { PromptHistory, type PromptHistoryOptions } from "./invocation/prompt-history.ts";
export type { JudgedLoopOptions, RoundState, RunUntilOptions } from "./run-until.ts";
export type { StopHook, StopState } from "./invocation/stop-hook.ts";
export { reviewer, type Reviewer, type ReviewerOptions } from "./reviewers/reviewer.ts";
export { userProxy } from "./user-proxy.ts";
export { CostTracker, type Cost, type CostReport, type CostTrackerOptions } from "./hooks/cost-tracker.ts";
export type { HookFailure } from "./hooks/hook-calls.ts";
export { HookManager, type HookManagerOptions } from "./hooks/hook-manager.ts";
export { RunLogger, type LoggedMoment, type RunLoggerOptions } from "./hooks/run-logger.ts";
export { ExecutionTracker, type Amounts, type ExecutionTrackerOptions } from "./policy/execution-tracker.ts";
export type { Hold, Reserving, Spending } from "./policy/standalone-ledger.ts";
export { SpawnTracker } from "./policy/spawn-tracker.ts";
export { PromptWindow, type WindowChange } from "./compaction/prompt-window.ts";
export { selectiveToolCalls, type SelectiveToolCallsOptions } from "./compaction/selective-tool-calls.ts";
export type { CompactionOptions } from "./compaction/compaction-plan.ts";
export { sessionCompaction, type SessionCompactionOptions } from "./compaction/session-compaction.ts";
export { slidingWindow, type SlidingWindowOptions } from "./compaction/sliding-window.ts";
export { summarization, type SummarizationOptions } from "./compaction/summarization.ts";
export {
  summarizeEach,
  summarizeIn,
  summarizeWith,
  type Summarizer,
  type SummarizerOptions,
  type SummaryRequest,
} from "./compaction/summarizer.ts";
export type { SummaryAttempt } from "./compaction/summary-attempt.ts";
export {
  modelBudget,
  tokenBudget,
  type ModelBudgetOptions,
  type TokenBudgetOptions,
} from "./compaction/token-budget.ts";
export {
  toolResultTruncation,
  type ToolResultTruncationOptions,
} from "./compaction/tool-result-truncation.ts";
export { type FileUse, usualFileUse } from "./compaction/touched-files.ts";
export { truncation, type TruncationOptions } from "./compaction/truncation.ts";
export { composeGate, type GateParts } from "./gate/compose-gate.ts";
export { ToolHooks, type PostToolHook, type PreToolHook, type ToolHooksOptions } from "./gate/tool-hooks.ts";
export { GuardedRun, withGuardrailModels, type TrippedGuardrail } from "./guardrails/guarded-run.ts";
export { inMemoryApprovals, type InMemoryApprovals } from "./permissions/approval-memory.ts";
export {
  permissions,
  type PermissionPolicy,
  type PermissionRules,
  type PermissionsOptions,
} from "./permissions/permissions.ts";
export { MiddlewarePipeline } from "./middleware/pipeline.ts";
