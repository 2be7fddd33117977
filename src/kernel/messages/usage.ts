import { addUsd } from "../base/money.ts";

/**
 * Usage of one or more model calls, in whole numbers of tokens. Cache and reasoning tokens are included in the totals.
 */
export interface Usage {
  /** All input tokens, including cache reads and writes. */
  readonly inputTokens: number;
  /** All output tokens, including reasoning. */
  readonly outputTokens: number;
  /** Input tokens that were read from the provider's cache. */
  readonly cacheReadTokens: number;
  /** Input tokens that were written to the provider's cache. */
  readonly cacheWriteTokens: number;
  /** Output tokens that the model used for reasoning. */
  readonly reasoningTokens: number;
  /** Cost in USD. `null` if the price of any included call is unknown; unknown is never zero. */
  readonly costUsd: number | null;
}

/** Usage of no call: zero tokens and zero cost. */
export const noUsage: Usage = Object.freeze({
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
  costUsd: 0,
});

/** Returns the sum of two usages. Its cost is `null` if either cost is unknown. */
export function addUsage(one: Usage, other: Usage): Usage {
  return {
    inputTokens: one.inputTokens + other.inputTokens,
    outputTokens: one.outputTokens + other.outputTokens,
    cacheReadTokens: one.cacheReadTokens + other.cacheReadTokens,
    cacheWriteTokens: one.cacheWriteTokens + other.cacheWriteTokens,
    reasoningTokens: one.reasoningTokens + other.reasoningTokens,
    costUsd: one.costUsd === null || other.costUsd === null ? null : addUsd(one.costUsd, other.costUsd),
  };
}

/** Returns the number of input and output tokens. */
export function totalTokens({ inputTokens, outputTokens }: Usage): number {
  return inputTokens + outputTokens;
}
