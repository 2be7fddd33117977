export { ReAct, react, type ReActDependencies } from "./architectures/react.ts";
export { estimateTokens, type TokenCounter } from "./compaction/message-size.ts";
export { PromptWindow } from "./compaction/prompt-window.ts";
export { selectiveToolCalls, type SelectiveToolCallsOptions } from "./compaction/selective-tool-calls.ts";
export { sessionCompaction, type SessionCompactionOptions } from "./compaction/session-compaction.ts";
export {
  contextMessages,
  sessionContext,
  type SessionContext,
  type ShownEntry,
} from "./compaction/session-context.ts";
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
export { isSummary, summaryMessage, summaryOf } from "./compaction/summary-message.ts";
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
export { soloAgent, type SoloAgentOptions } from "./solo-agent.ts";
