import {
  checkOptions,
  Fault,
  optionNames,
  type CompactionStrategy,
  type Model,
  estimateTokens,
  type TokenCounter,
} from "../../../kernel/index.ts";
import { requireLimit } from "../../base/limit.ts";

export interface TokenBudgetOptions {
  /** The strategies, from the least to the most destructive. */
  readonly strategies: readonly CompactionStrategy[];
  /** Maximum number of tokens of the result. */
  readonly maxTokens: number;
  readonly countTokens?: TokenCounter;
}

const knownOptions = optionNames<TokenBudgetOptions>({
  strategies: true,
  maxTokens: true,
  countTokens: true,
});

/** Applies strategies in order until the history fits; none if it already fits. */
export function tokenBudget(options: TokenBudgetOptions): CompactionStrategy {
  checkOptions("tokenBudget()", options, knownOptions);
  const { strategies, countTokens = estimateTokens } = options;
  const maxTokens = requireLimit("maxTokens", options.maxTokens, 1);
  return {
    async compact(rawHistory) {
      let window = rawHistory;
      for (const strategy of strategies) {
        if (countTokens(window) <= maxTokens) return window;
        window = await strategy.compact(window, { maxTokens });
      }
      return window;
    },
    isDue: (rawHistory) =>
      countTokens(rawHistory) > maxTokens &&
      strategies.some((strategy) => strategy.isDue?.(rawHistory, { maxTokens }) !== false),
  };
}

export interface ModelBudgetOptions extends Omit<TokenBudgetOptions, "maxTokens"> {
  readonly model: Pick<Model, "provider" | "modelId" | "contextWindow">;
  /**
   * The fraction of the model's window that the history may use. The rest is for tools and the answer. Default: 0.8.
   */
  readonly triggerRatio?: number;
}

const modelNames = optionNames<ModelBudgetOptions>({
  model: true,
  triggerRatio: true,
  strategies: true,
  countTokens: true,
});

/** Like `tokenBudget`, with a limit derived from the model's context window. */
export function modelBudget(options: ModelBudgetOptions): CompactionStrategy {
  checkOptions("modelBudget()", options, modelNames);
  const { model, triggerRatio = 0.8, ...rest } = options;
  const { provider, modelId, contextWindow } = model;
  if (contextWindow === undefined) {
    throw new Fault(
      "invalid_argument",
      `the context window of ${provider}/${modelId} is unknown; use tokenBudget with maxTokens`,
    );
  }
  if (!(triggerRatio > 0 && triggerRatio <= 1)) {
    throw new Fault(
      "invalid_argument",
      `invalid triggerRatio ${triggerRatio}: expected a number above 0 and at most 1`,
    );
  }
  return tokenBudget({ ...rest, maxTokens: Math.max(1, Math.floor(contextWindow * triggerRatio)) });
}
