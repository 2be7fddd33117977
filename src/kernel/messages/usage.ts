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

/**
 * Prices of a model, in USD per token. A kind of token without a price costs as much as other input or output tokens.
 */
export interface ModelPrice {
  /** Price of an input token. */
  readonly inputUsd: number;
  /** Price of an output token. */
  readonly outputUsd: number;
  /** Price of an input token that is read from the provider's cache. Default: `inputUsd`. */
  readonly cacheReadUsd?: number;
  /** Price of an input token that is written to the provider's cache. Default: `inputUsd`. */
  readonly cacheWriteUsd?: number;
  /** Price of a reasoning token. Default: `outputUsd`. */
  readonly reasoningUsd?: number;
  /** Price of the call itself, independent of its size. Default: 0. */
  readonly requestUsd?: number;
}

/** Selects a price. */
export interface PriceQuery {
  /** Name of the provider. */
  readonly provider: string;
  /** Id of the model at the provider. */
  readonly modelId: string;
  /** Number of input tokens. Some prices depend on it. */
  readonly inputTokens: number;
  /** Time of the call, in epoch milliseconds. Prices change. */
  readonly at: number;
}

/** Prices of models. It works offline. `find` is synchronous because it runs before every model call. */
export interface PriceTable {
  /**
   * Loads the prices. The runtime waits for it before the first `find`. If absent or `undefined`, the table is ready.
   */
  load?(): Promise<void> | undefined;
  /** Returns the price of a model. B4: `null` means that the price is unknown, which is never treated as zero. */
  find(query: PriceQuery): ModelPrice | null;
}
