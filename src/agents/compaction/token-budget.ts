import { Fault, type CompactionStrategy, type Model } from "../../kernel/index.ts";
import { requireLimit } from "./limit.ts";
import { estimateTokens, type TokenCounter } from "./message-size.ts";

export interface TokenBudgetOptions {
  /** From the mildest to the harshest. */
  readonly strategies: readonly CompactionStrategy[];
  /** What must fit. */
  readonly maxTokens: number;
  readonly countTokens?: TokenCounter;
}

/** Applies strategies in their order until the history fits, and none when it fits as it is. */
export function tokenBudget(options: TokenBudgetOptions): CompactionStrategy {
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
  /** The part of the model's window that the history may take. 0.80 unless told: the rest is for tools and the answer. */
  readonly triggerRatio?: number;
}

/** The same, measured by what a model can read. */
export function modelBudget({ model, triggerRatio = 0.8, ...rest }: ModelBudgetOptions): CompactionStrategy {
  const { provider, modelId, contextWindow } = model;
  if (contextWindow === undefined) {
    throw new Fault(
      "invalid_argument",
      `the context window of ${provider}/${modelId} is not known: use tokenBudget with maxTokens`,
    );
  }
  if (!(triggerRatio > 0 && triggerRatio <= 1)) {
    throw new Fault("invalid_argument", `triggerRatio is ${triggerRatio}: it must be above 0 and at most 1`);
  }
  return tokenBudget({ ...rest, maxTokens: Math.max(1, Math.floor(contextWindow * triggerRatio)) });
}
