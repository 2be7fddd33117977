import { clock, usd } from "../../base/format.ts";

/** A fact of a comparison: a figure and what it means. */
export interface DifferenceWords {
  readonly value: string;
  readonly words: string;
}

/** How much more or less the second of two runs cost. Costs that look alike are equal. */
export function costDifference(a: number, b: number): DifferenceWords {
  const [more, shown] = [b - a, usd(Math.abs(b - a))];
  if (usd(a) === usd(b) || shown === usd(0)) return { value: "Equal", words: `both cost ${usd(a)}` };
  const side = more < 0 ? "less" : "more";
  const value = `${more < 0 ? "−" : "+"}${shown}`;
  if (a === 0) return { value, words: `B costs ${side}` };
  const share = Math.round((100 * Math.abs(more)) / a);
  return { value, words: `B costs ${share === 0 ? "under 1" : share} % ${side}` };
}

/** How much longer or shorter the second of two runs took, in milliseconds. Times that look alike are equal. */
export function timeDifference(a: number, b: number): DifferenceWords {
  const [more, shown] = [b - a, clock(Math.abs(b - a))];
  const least = clock(Math.min(a, b));
  if (shown === clock(0))
    return { value: "Equal", words: least === clock(0) ? "both took under 1 s" : `both took ${least}` };
  return {
    value: `${more < 0 ? "−" : "+"}${shown}`,
    words: `B took ${more < 0 ? "less" : "longer"}`,
  };
}
