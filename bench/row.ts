/** One line of a benchmark: a figure, what it is measured against in the same run, and the goal for their ratio. */
export interface Row {
  readonly name: string;
  /** Ours, in `unit`. */
  readonly value: number;
  readonly unit: string;
  /** The floor or the peer, in the same unit and the same run; `null` when the goal is on the value itself. */
  readonly against: number | null;
  readonly goal: { readonly atMost: number } | { readonly atLeast: number } | null;
  /** Why the row could not be measured. Its value does not matter then, and the goal counts as missed. */
  readonly failure?: string;
}

/** A row that could not be measured. */
export function failedRow(name: string, unit: string, failure: string): Row {
  return { name, value: 0, unit, against: null, goal: null, failure };
}

export function ratioOf({ value, against }: Row): number {
  return against === null ? value : value / against;
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
  const shown = against === null ? "" : `  against ${format(against)}: ${ratioOf(row).toFixed(2)}x`;
  const limit =
    goal === null ? "" : "atMost" in goal ? `  goal <= ${goal.atMost}` : `  goal >= ${goal.atLeast}`;
  const verdict = goal === null ? "" : meets(row) ? "  ok" : "  MISSED";
  return `${name.padEnd(58)} ${format(value).padStart(10)} ${unit.padEnd(9)}${shown}${limit}${verdict}`;
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
