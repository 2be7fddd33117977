import {
  Fault,
  type CompactionStrategy,
  type Model,
  estimateTokens,
  type TokenCounter,
  is,
  optionTable,
  type OptionKinds,
} from "../../../kernel/index.ts";

export interface TokenBudgetOptions {
  /**
   * The strategies in the order in which they are applied, from the one that loses least to the one that loses
   * most.
   */
  readonly strategies: readonly CompactionStrategy[];
  /** Maximum number of tokens of the result. */
  readonly maxTokens: number;
  readonly countTokens?: TokenCounter;
}

const knownOptions = optionTable({
  strategies: is.list(),
  maxTokens: is.integer({ from: 1, required: true }),
  countTokens: is.any,
} satisfies OptionKinds<TokenBudgetOptions>);

/**
 * Creates a strategy that applies several strategies in order until the history fits. It applies none if the
 * history already fits.
 */
export function tokenBudget(options: TokenBudgetOptions): CompactionStrategy {
  const { strategies, maxTokens, countTokens = estimateTokens } = knownOptions.read("tokenBudget()", options);
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

const modelTable = optionTable({
  model: is.any,
  triggerRatio: is.number({ above: 0, to: 1, default: 0.8 }),
  strategies: is.list(),
  countTokens: is.any,
} satisfies OptionKinds<ModelBudgetOptions>);

/** Creates a strategy like `tokenBudget`, with a limit that follows from the model's context window. */
export function modelBudget(options: ModelBudgetOptions): CompactionStrategy {
  const { model, triggerRatio, ...rest } = modelTable.read("modelBudget()", options);
  const { provider, modelId, contextWindow } = model;
  if (contextWindow === undefined) {
    throw new Fault(
      "invalid_argument",
      `the context window of ${provider}/${modelId} is unknown; use tokenBudget with maxTokens`,
    );
  }
  return tokenBudget({ ...rest, maxTokens: Math.max(1, Math.floor(contextWindow * triggerRatio)) });
}
