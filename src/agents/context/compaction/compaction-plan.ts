import {
  describeValue,
  executionBudget,
  Fault,
  type ChatMessage,
  type CompactionResult,
  type CompactionStrategy,
  type ExecutionBudget,
  type RunContext,
  is,
  optionTable,
  type OptionKinds,
} from "../../../kernel/index.ts";
import type { Summarizer } from "./summarizer.ts";
import { type FileUse, usualFileUse } from "./touched-files.ts";

/** Creates the strategy that shortens a conversation. The run pays for its summaries. */
export type StrategyFactory = (summarize: Summarizer) => CompactionStrategy;

/**
 * Asks the extensions before a compaction, inside its step. Returns the decision of an extension: to cancel the
 * compaction, or its own summary. Returns `undefined` if no extension decides, so that the agent makes the summary.
 * If `problemOf` returns a fault for a summary, the fault is recorded as an error of the extension.
 */
export type BeforeCompact = (
  event: { readonly messages: readonly ChatMessage[]; readonly instructions?: string },
  ctx: RunContext,
  problemOf: (summary: CompactionResult) => Fault | undefined,
) => Promise<{ readonly cancel: true } | CompactionResult | undefined>;

/** How long conversations are shortened. */
export interface CompactionOptions {
  /**
   * Creates the strategy that shortens what the model sees within an invocation, between its turns. It does not
   * change the session. If absent, the model sees the whole session until a request exceeds its context window.
   */
  readonly strategy?: StrategyFactory;
  /**
   * Number of tokens of the model's context window that should stay free. If an invocation leaves fewer tokens
   * free, the session is compacted. At most half of the window is kept free. Default: 8_192.
   */
  readonly reserveTokens?: number;
  /** Number of tokens of the newest messages that a compaction keeps unchanged. Default: 16_384. */
  readonly keepRecentTokens?: number;
  /** Budget of the run that compacts the session. It replaces the agent's budget. Default: `{ maxTurns: 3 }`. */
  readonly budget?: Partial<ExecutionBudget>;
  /** Which tools read or change files. A summary lists these files. Default: `usualFileUse`. */
  readonly fileUse?: FileUse;
}

/** The checked options of an agent. */
export interface CompactionPlan extends Required<Omit<CompactionOptions, "strategy">> {
  readonly strategy: StrategyFactory | null;
  /** Asks the extensions before a compaction. `null` if the agent has no extensions. */
  readonly beforeCompact: BeforeCompact | null;
}

const knownOptions = optionTable({
  strategy: is.callback({ hint: "use strategy: (summarize) => summarization({ summarize })" }),
  reserveTokens: is.integer({ from: 0, default: 8_192 }),
  keepRecentTokens: is.integer({ from: 1, default: 16_384 }),
  budget: is.checkedBy(executionBudget),
  fileUse: is.callback({
    hint: 'use fileUse: (call) => ({ use: "read", path: "..." }), or null for a call that touches no file',
  }),
} satisfies OptionKinds<CompactionOptions>);

/** Checks the option `compaction` of an agent. Returns `null` if compaction is switched off. */
export function compactionPlan(
  agent: string,
  option: false | CompactionOptions | undefined,
  beforeCompact: BeforeCompact | null,
): CompactionPlan | null {
  if (option === false) return null;
  const owner = `compaction of agent ${agent}`;
  if (typeof option === "function" || option === null || (option as unknown) === true)
    throw new Fault(
      "invalid_argument",
      `invalid ${owner}: expected an object or false, not ${describeValue(option)}; use compaction: { strategy: (summarize) => ... }, or false to switch compaction off`,
    );
  const options = option ?? {};
  const {
    strategy = null,
    reserveTokens,
    keepRecentTokens,
    budget = { maxTurns: 3 },
    fileUse = usualFileUse,
  } = knownOptions.read(owner, options);
  return {
    strategy,
    reserveTokens,
    keepRecentTokens,
    budget,
    fileUse,
    beforeCompact,
  };
}

/** Returns the limits of a compaction for a model. For a small window, the limits are lower. */
export function limitsFor(
  { reserveTokens, keepRecentTokens }: Pick<CompactionPlan, "reserveTokens" | "keepRecentTokens">,
  contextWindow: number | null,
): { readonly maxTokens: number; readonly reserveTokens: number; readonly keepRecentTokens: number } {
  if (contextWindow === null) return { maxTokens: Infinity, reserveTokens, keepRecentTokens };
  const reserve = Math.min(reserveTokens, Math.floor(contextWindow / 2));
  const maxTokens = contextWindow - reserve;
  // If the kept part filled the window again, every invocation would be followed by a compaction.
  const keep = Math.max(1, Math.min(keepRecentTokens, Math.floor(maxTokens / 2)));
  return { maxTokens, reserveTokens: reserve, keepRecentTokens: keep };
}
