/**
 * One line of a benchmark: a figure, the figure with which it is compared in the same process, and the goal for their
 * ratio.
 */
export interface Row {
  readonly name: string;
  /** Ours, in `unit`. */
  readonly value: number;
  readonly unit: string;
  /** The floor or the peer, in the same unit and the same run; `null` when the goal is on the value itself. */
  readonly against: number | null;
  readonly goal: { readonly atMost: number } | { readonly atLeast: number } | null;
  /** Quartiles of a row that was measured in pairs. Its ratio is the median of the ratios of the pairs. */
  readonly pairs?: { readonly value: Quartiles; readonly against: Quartiles; readonly ratio: Quartiles };
  /** Why the row could not be measured. Its value does not matter then, and the goal counts as missed. */
  readonly failure?: string;
}

export interface Quartiles {
  readonly lower: number;
  readonly median: number;
  readonly upper: number;
}

/** A row that could not be measured. */
export function failedRow(name: string, unit: string, failure: string): Row {
  return { name, value: 0, unit, against: null, goal: null, failure };
}

export function ratioOf({ value, against, pairs }: Row): number {
  return pairs?.ratio.median ?? (against === null ? value : value / against);
}

export function meets(row: Row): boolean {
  if (row.failure !== undefined) return false;
  const ratio = ratioOf(row);
  if (row.goal === null) return true;
  return "atMost" in row.goal ? ratio <= row.goal.atMost : ratio >= row.goal.atLeast;
}

export function formatRow(row: Row): string {
  const { name, value, unit, against, goal, failure } = row;
  if (failure !== undefined) return `${name.padEnd(58)} FAILED: ${failure}`;
  const { pairs } = row;
  const [ofValue, ofAgainst, ofRatio] = [spread(pairs?.value), spread(pairs?.against), spread(pairs?.ratio)];
  const shown =
    against === null ? "" : `  against ${format(against)}${ofAgainst}: ${ratioOf(row).toFixed(2)}x${ofRatio}`;
  const limit =
    goal === null ? "" : "atMost" in goal ? `  goal <= ${goal.atMost}` : `  goal >= ${goal.atLeast}`;
  const verdict = goal === null ? "" : meets(row) ? "  ok" : "  MISSED";
  return `${name.padEnd(58)} ${format(value).padStart(10)} ${unit.padEnd(9)}${ofValue}${shown}${limit}${verdict}`;
}

/** The quartiles as text, or nothing for a row without them. */
function spread(quartiles: Quartiles | undefined): string {
  return quartiles === undefined ? "" : ` [${format(quartiles.lower)}..${format(quartiles.upper)}]`;
}

/** Quartiles, interpolated between neighbours. */
export function quartilesOf(values: readonly number[]): Quartiles {
  const sorted = values.toSorted((one, other) => one - other);
  const at = (share: number): number => {
    const place = share * (sorted.length - 1);
    const [below = Number.NaN, above = below] = sorted.slice(Math.floor(place));
    return below + (above - below) * (place % 1);
  };
  return { lower: at(0.25), median: at(0.5), upper: at(0.75) };
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? 0;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? 0) + upper) / 2;
}

function format(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
}
