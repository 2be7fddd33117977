import type { ModelPrice, ReportedUsage } from "../kernel/index.ts";

/** What reported usage costs. `null`: the price is not known, and the provider did not say. */
export function priceUsage(price: ModelPrice | null, usage: ReportedUsage): number | null {
  if (usage.costUsd !== undefined) return usage.costUsd;
  if (price === null) return null;
  const {
    inputUsd,
    outputUsd,
    cacheReadUsd = inputUsd,
    cacheWriteUsd = inputUsd,
    reasoningUsd = outputUsd,
    requestUsd = 0,
  } = price;
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens } = usage;
  return (
    requestUsd +
    Math.max(0, inputTokens - cacheReadTokens - cacheWriteTokens) * inputUsd +
    cacheReadTokens * cacheReadUsd +
    cacheWriteTokens * cacheWriteUsd +
    Math.max(0, outputTokens - reasoningTokens) * outputUsd +
    reasoningTokens * reasoningUsd
  );
}

/** B1: the most a token of input can cost. */
export function dearestInputUsd({ inputUsd, cacheReadUsd = 0, cacheWriteUsd = 0 }: ModelPrice): number {
  return Math.max(inputUsd, cacheReadUsd, cacheWriteUsd);
}

/** B1: the most a token of output can cost. */
export function dearestOutputUsd({ outputUsd, reasoningUsd = 0 }: ModelPrice): number {
  return Math.max(outputUsd, reasoningUsd);
}
