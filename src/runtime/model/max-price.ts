import type { ModelPrice } from "../../kernel/index.ts";

/** B1: the most a token of input can cost. */
export function maxInputUsdPerToken({ inputUsd, cacheReadUsd = 0, cacheWriteUsd = 0 }: ModelPrice): number {
  return Math.max(inputUsd, cacheReadUsd, cacheWriteUsd);
}

/** B1: the most a token of output can cost. */
export function maxOutputUsdPerToken({ outputUsd, reasoningUsd = 0 }: ModelPrice): number {
  return Math.max(outputUsd, reasoningUsd);
}
