import { addUsd } from "../base/money.ts";

/** What model calls used. Whole numbers; the parts are contained in the totals. */
export interface Usage {
  /** All input, cache reads and writes included. */
  readonly inputTokens: number;
  /** All output, reasoning included. */
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  readonly reasoningTokens: number;
  /** `null`: not known, because some call in it has no known price. Unknown is never zero. */
  readonly costUsd: number | null;
}

export const noUsage: Usage = Object.freeze({
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
  costUsd: 0,
});

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

export function totalTokens({ inputTokens, outputTokens }: Usage): number {
  return inputTokens + outputTokens;
}
