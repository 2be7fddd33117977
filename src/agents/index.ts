export type { InstructionsFunction } from "./definition/agent-definition.ts";
export { kindTable } from "./definition/agent-settings.ts";
export type { PolicyOfCalls } from "./definition/agent-parts.ts";
export type {
  ContinueOptions,
  InvokeOptions,
  ReturnOnApproval,
  StreamOptions,
  SubmitRunOptions,
} from "./calling/invoke-options.ts";
export type { OnApprovalHandler } from "./calling/on-approval.ts";
export { readInput, type AgentInput } from "./base/agent-input.ts";
export type { InputMessage } from "./base/input-messages.ts";
export { RunStream } from "./calling/stream/run-stream.ts";
export type { AnswerEnd, AnswerPart, WaitingQuestion } from "./calling/stream/answer-part.ts";
export {
  endText,
  failureText,
  mediaUrl,
  outputValue,
  uiMessageDone,
  UiMessageEncoder,
  uiMessageFrames,
  uiMessageHeaders,
} from "./calling/stream/ui-message-encoder.ts";
export { AnswerFold, type AnswerFoldOptions } from "./calling/stream/answer-fold.ts";
export { answerParts, followAnswer, type FollowAnswerOptions } from "./calling/stream/follow-answer.ts";
export type { PartialValue } from "./calling/stream/partial-json.ts";
export { hasToolCall } from "./interception/turns/turn-control.ts";
export { ConditionalFlow, type ConditionalFlowOptions } from "./team/flows/conditional.ts";
export { ParallelFlow, type Merge, type ParallelFlowOptions } from "./team/flows/parallel.ts";
export { SequentialFlow } from "./team/flows/sequential.ts";
export {
  END,
  START,
  type NodeContext,
  type NodeFunction,
  type FunctionNode,
  type GraphEdge,
  type GraphNode,
  type GraphRouter,
} from "./team/flows/graph-definition.ts";
export { GraphFlow, type GraphFlowOptions } from "./team/flows/graph.ts";
export {
  informationAgent,
  startInput,
  type InformationItem,
  type InformationOptions,
} from "./architectures/information-agent.ts";
export { orchestration, type SubAgent, type SubAgentConfig } from "./team/sub-agents.ts";
export type { JudgedLoopOptions, RoundState, RunUntilOptions } from "./calling/run-until.ts";
export type { StopHook, StopState } from "./interception/turns/stop-hook.ts";
export { reviewer, type Reviewer } from "./team/reviewers/reviewer.ts";
export { userProxy } from "./architectures/user-proxy.ts";
export { CostTracker, type Cost, type CostReport } from "./interception/hooks/cost-tracker.ts";
export type { HookFailure } from "./interception/hooks/hook-calls.ts";
export { HookManager } from "./interception/hooks/hook-manager.ts";
export { RunLogger, type LoggedMoment } from "./interception/hooks/run-logger.ts";
export { ExecutionTracker, type Amounts } from "./interception/limits/execution-tracker.ts";
export type { Hold } from "./interception/limits/standalone-ledger.ts";
export { SpawnTracker } from "./interception/limits/spawn-tracker.ts";
export { selectiveToolCalls } from "./context/compaction/selective-tool-calls.ts";
export { sessionCompaction } from "./context/compaction/session-compaction.ts";
export { slidingWindow } from "./context/compaction/sliding-window.ts";
export { summarization } from "./context/compaction/summarization.ts";
export {
  summarizeEach,
  summarizeIn,
  summarizeWith,
  type Summarizer,
  type SummaryRequest,
} from "./context/compaction/summarizer.ts";
export { modelBudget, tokenBudget } from "./context/compaction/token-budget.ts";
export { toolResultTruncation } from "./context/compaction/tool-result-truncation.ts";
export { truncation } from "./context/compaction/truncation.ts";
export { composeGate } from "./interception/gate/tool-pipeline.ts";
export {
  ToolHooks,
  type PostToolHook,
  type PreToolHook,
  type ToolHooksOptions,
} from "./interception/gate/tool-hooks.ts";
export {
  GuardedRun,
  withGuardrailModels,
  type TrippedGuardrail,
} from "./interception/guardrails/guarded-run.ts";
export { inMemoryApprovals } from "./interception/permissions/approval-memory.ts";
export { permissions, type PermissionPolicy } from "./interception/permissions/permissions.ts";
export { cost, durations, genAi, tokenUsage, type Operation } from "./interception/middleware/gen-ai.ts";
export {
  finishReason,
  outputMessages,
  providerName,
  spokenValue,
} from "./interception/middleware/gen-ai-messages.ts";
export { MiddlewarePipeline } from "./interception/middleware/pipeline.ts";
