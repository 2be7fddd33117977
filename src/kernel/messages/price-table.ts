/** Dollars per token. A part without a price of its own costs what `input` or `output` costs. */
export interface ModelPrice {
  readonly inputUsd: number;
  readonly outputUsd: number;
  readonly cacheReadUsd?: number;
  readonly cacheWriteUsd?: number;
  readonly reasoningUsd?: number;
  /** For the call itself, whatever its size. */
  readonly requestUsd?: number;
}

export interface PriceQuery {
  readonly provider: string;
  readonly modelId: string;
  /** Some prices step up with the size of the request. */
  readonly inputTokens: number;
  /** Epoch milliseconds; prices change. */
  readonly at: number;
}

/** What tokens cost. Offline and, once loaded, synchronous: it is asked before every call. */
export interface PriceTable {
  /** Waited for before the first `find`. Nothing to wait for, or no such method: it is ready. */
  load?(): Promise<void> | undefined;
  /** `null`: not known, which is never zero (B4). */
  find(query: PriceQuery): ModelPrice | null;
}
