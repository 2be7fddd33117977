import type { ReportedUsage } from "./model.ts";
import type { ModelPrice } from "./price-table.ts";

/** Returns the cost of reported usage in USD. `null` if the provider reported no cost and the price is unknown. */
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
  const { inputTokens, outputTokens, cacheReadTokens = 0, cacheWriteTokens = 0, reasoningTokens = 0 } = usage;
  return (
    requestUsd +
    Math.max(0, inputTokens - cacheReadTokens - cacheWriteTokens) * inputUsd +
    cacheReadTokens * cacheReadUsd +
    cacheWriteTokens * cacheWriteUsd +
    Math.max(0, outputTokens - reasoningTokens) * outputUsd +
    reasoningTokens * reasoningUsd
  );
}
