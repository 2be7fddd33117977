/** Calls and what was charged for them, in nano-dollars. */
interface ChargedCalls {
  readonly calls: number;
  readonly nanoUsd: number;
}

/**
 * B3: what unreported calls likely cost: as much as the reported calls of the same kind on average, and at most what was charged.
 * `null` if that is not known, because no call was reported or the number of unreported calls is unknown.
 */
export function likelyNanoUsd(reported: ChargedCalls, lost: ChargedCalls): number | null {
  if (lost.nanoUsd === 0) return 0;
  if (reported.calls <= 0 || lost.calls <= 0) return null;
  return Math.min(lost.nanoUsd, lost.calls * Math.floor(reported.nanoUsd / reported.calls));
}
