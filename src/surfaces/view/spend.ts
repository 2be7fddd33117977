import { addUsd, fromNanoUsd, likelyNanoUsd, toNanoUsd } from "../../kernel/index.ts";

/** What was spent. */
export interface Spend {
  /** Number of model calls that are charged. */
  readonly calls: number;
  /** Input and output tokens. */
  readonly tokens: number;
  /** `null` if a price is unknown. */
  readonly costUsd: number | null;
  /** The part that was charged for calls without reported usage (rule B3). */
  readonly lost: LostSpend;
}

/** Charges for calls without reported usage (rule B3). */
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

/** Returns a spend reduced by a charge that is part of it. */
export function without(spend: Spend, charge: Spend): Spend {
  return { ...lossWithout(spend, charge), lost: lossWithout(spend.lost, charge.lost) };
}

/**
 * Returns the likely cost of the unreported calls of a spend (rule B3). `null` if it cannot be estimated, for
 * example because there was no other call.
 */
export function likelyLossUsd({ calls, costUsd, lost }: Spend): number | null {
  if (costUsd === null || lost.costUsd === null) return null;
  const lostNanoUsd = toNanoUsd(lost.costUsd);
  const reported = { calls: calls - lost.calls, nanoUsd: toNanoUsd(costUsd) - lostNanoUsd };
  const likely = likelyNanoUsd(reported, { calls: lost.calls, nanoUsd: lostNanoUsd });
  return likely === null ? null : fromNanoUsd(likely);
}

function lossWithout(one: LostSpend, other: LostSpend): LostSpend {
  const isKnown = one.costUsd !== null && other.costUsd !== null;
  return {
    calls: one.calls - other.calls,
    tokens: one.tokens - other.tokens,
    costUsd: isKnown ? fromNanoUsd(Math.max(0, toNanoUsd(one.costUsd) - toNanoUsd(other.costUsd))) : null,
  };
}

function sumOfLosses(one: LostSpend, other: LostSpend): LostSpend {
  return {
    calls: one.calls + other.calls,
    tokens: one.tokens + other.tokens,
    costUsd: one.costUsd === null || other.costUsd === null ? null : addUsd(one.costUsd, other.costUsd),
  };
}
