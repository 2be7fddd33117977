/** A number of calls and the amount that they were charged, in nano-dollars. */
interface ChargedCalls {
  readonly calls: number;
  readonly nanoUsd: number;
}

/**
 * B3: estimates the cost of calls without reported usage. It is the average of the reported calls of the same kind,
 * and at most the amount that was charged. `null` if it cannot be estimated, because no call was reported or the
 * number of unreported calls is unknown.
 */
export function likelyNanoUsd(reported: ChargedCalls, lost: ChargedCalls): number | null {
  if (lost.nanoUsd === 0) return 0;
  if (reported.calls <= 0 || lost.calls <= 0) return null;
  return Math.min(lost.nanoUsd, lost.calls * Math.floor(reported.nanoUsd / reported.calls));
}
