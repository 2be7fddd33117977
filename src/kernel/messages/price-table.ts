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

/** Prices of models. It works offline, and `find` is synchronous because it runs before every model call. */
export interface PriceTable {
  /**
   * Loads the prices. The runtime waits for it before the first `find`. If absent or `undefined`, the table is ready.
   */
  load?(): Promise<void> | undefined;
  /** Returns the price of a model. B4: `null` means that the price is unknown, which is never treated as zero. */
  find(query: PriceQuery): ModelPrice | null;
}
