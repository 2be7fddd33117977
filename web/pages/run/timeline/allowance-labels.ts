import { capUsd } from "../../../base/format.ts";
import type { TracePoint } from "../../../../src/surfaces/view/run-trace.ts";
import { isClear, type TimeScale } from "../../../model/time-scale.ts";

/** A label of the line of the allowance, which stands where the line has this value. */
export interface AllowanceLabel {
  readonly left: number;
  readonly text: string;
  readonly value: number;
}

const labelWidth = 104;
const indent = 4;

function label(value: number, left: number): AllowanceLabel {
  return { left, text: `allowance ${capUsd(value)}`, value };
}

/** The first place at or after `x` at which a label covers no fold. Without one, before `x`, or the right end of the plot. */
function placeFor(x: number, scale: TimeScale): number {
  const ends = scale.folds.map((fold) => fold.x + fold.width + indent);
  const places = [x, ...ends.filter((end) => end > x), x - 2 * indent - labelWidth];
  const clear = places.find((place) => isClear(scale, place, labelWidth));
  return clear ?? Math.max(0, Math.min(x, scale.width - labelWidth));
}

/** The labels of the first allowance, at the start, and of the newest one, after the last top-up if it fits there. */
export function allowanceLabels(
  cap: number | null,
  topUps: readonly TracePoint[],
  scale: TimeScale,
): readonly AllowanceLabel[] {
  if (cap === null) return [];
  const first = topUps.reduce((sum, { value }) => sum - value, cap);
  const start = placeFor(indent, scale);
  const last = topUps.at(-1);
  if (last === undefined) return [label(cap, start)];
  const newest = label(cap, placeFor(scale.x(last) + indent, scale));
  const [next] = topUps;
  const hasRoom = next !== undefined && scale.x(next) >= start + labelWidth;
  return hasRoom ? [label(first, start), newest] : [newest];
}
