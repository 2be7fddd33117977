import { addUsd } from "../../kernel/index.ts";

/** What was spent. */
export interface Spend {
  /** Number of model calls that are charged. */
  readonly calls: number;
  /** Input and output tokens. */
  readonly tokens: number;
  /** `null` if a price is unknown. */
  readonly costUsd: number | null;
  /** B3: the part that was charged for calls without reported usage. */
  readonly lost: LostSpend;
}

/** B3: charges for calls without reported usage. */
export interface LostSpend {
  readonly calls: number;
  readonly tokens: number;
  readonly costUsd: number | null;
}

export const noLoss: LostSpend = Object.freeze({ calls: 0, tokens: 0, costUsd: 0 });
export const noSpend: Spend = Object.freeze({ ...noLoss, lost: noLoss });

/** Returns the sum of two spends. Its cost is `null` if either cost is unknown. */
export function sumOf(one: Spend, other: Spend): Spend {
  return { ...sumOfLosses(one, other), lost: sumOfLosses(one.lost, other.lost) };
}

function sumOfLosses(one: LostSpend, other: LostSpend): LostSpend {
  return {
    calls: one.calls + other.calls,
    tokens: one.tokens + other.tokens,
    costUsd: one.costUsd === null || other.costUsd === null ? null : addUsd(one.costUsd, other.costUsd),
  };
}
