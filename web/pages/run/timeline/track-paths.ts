import type { HeldSpan, TracePoint } from "../../../../src/surfaces/view/run-trace.ts";
import type { Fold, Moment, TimeScale } from "../../../model/time/time-scale.ts";

/** Maps a value to a place above the ground of a track. */
type Height = (value: number) => number;

/**
 * Returns the path of the area under values that are valid from one point to the next. It is interrupted at every
 * fold.
 */
export function areaPath(
  points: readonly TracePoint[],
  scale: TimeScale,
  { until, y, ground }: { readonly until: Moment; readonly y: Height; readonly ground: number },
): string {
  let path = `M0 ${ground}`;
  let value = 0;
  let next = 0;
  const folds = scale.folds.filter(({ seq }) => seq <= until.seq);
  for (const { at, seq, value: after } of points) {
    for (; (folds[next]?.seq ?? Infinity) <= seq; next++) path += foldPath(folds[next], y(value), ground);
    path += `H${scale.x({ at, seq }).toFixed(1)}V${y(after).toFixed(1)}`;
    value = after;
  }
  for (; next < folds.length; next++) path += foldPath(folds[next], y(value), ground);
  return `${path}H${scale.x(until).toFixed(1)}V${ground}z`;
}

function foldPath(fold: Fold | undefined, height: number, ground: number): string {
  if (fold === undefined) return "";
  const [left, right] = [fold.x, fold.x + fold.width];
  return `H${left.toFixed(1)}V${ground}H${right.toFixed(1)}V${height.toFixed(1)}`;
}

/**
 * Returns the path of a line of values that are valid from one point to the next, such as a budget that was topped
 * up.
 */
export function linePath(first: number, points: readonly TracePoint[], scale: TimeScale, y: Height): string {
  let path = `M0 ${y(first).toFixed(1)}`;
  for (const { at, seq, value } of points)
    path += `H${scale.x({ at, seq }).toFixed(1)}V${y(value).toFixed(1)}`;
  return `${path}H${scale.width.toFixed(1)}`;
}

/**
 * Returns the path of the band for reserved amounts above the spent amount. A reserved amount is valid until the
 * next of its times, and the last one until the end. Nothing is drawn inside a fold.
 */
export function heldPath(
  held: readonly HeldSpan[],
  spentAt: (activeMs: number) => number,
  scale: TimeScale,
  { endMs, y }: { readonly endMs: number; readonly y: Height },
): string {
  let path = "";
  for (const [at, { activeMs, heldUsd }] of held.entries()) {
    const untilMs = Math.min(endMs, held[at + 1]?.activeMs ?? endMs);
    if (heldUsd <= 0 || activeMs >= untilMs) continue;
    const spent = spentAt(activeMs);
    const [bottom, top] = [y(spent).toFixed(1), y(spent + heldUsd).toFixed(1)];
    for (const [left, right] of outsideFolds(scale, scale.xOfActive(activeMs), scale.xOfActive(untilMs)))
      path += `M${left.toFixed(1)} ${bottom}V${top}H${right.toFixed(1)}V${bottom}z`;
  }
  return path;
}

/** The parts of a stretch that are in no fold. */
function outsideFolds(
  { folds }: TimeScale,
  left: number,
  right: number,
): readonly (readonly [left: number, right: number])[] {
  const parts: (readonly [number, number])[] = [];
  let from = left;
  for (const { x, width } of folds)
    if (x >= from && x < right) {
      parts.push([from, x]);
      from = x + width;
    }
  return [...parts, [from, right] as const].filter(([start, end]) => end > start);
}

/** Place of the label of a fold. */
export interface FlagPlace {
  readonly fold: Fold;
  readonly text: string;
  readonly left: number;
  readonly width: number;
  /** Number of the line, from the top. */
  readonly line: number;
}

const letterWidth = 6;
const flagPadding = 16;
const gap = 8;
const leastFlag = 96;
const mostLines = 3;

/**
 * Places the label of every fold inside the plot: right of its fold if it fits there, otherwise on the side with more
 * room, where it is cut. Labels that would cover each other are on different lines.
 */
export function flagPlaces(
  flags: readonly { readonly fold: Fold; readonly text: string }[],
  width: number,
): readonly FlagPlace[] {
  const placed: FlagPlace[] = [];
  for (const { fold, text } of flags) {
    const wanted = text.length * letterWidth + flagPadding;
    const rightRoom = width - (fold.x + fold.width) - 2 * gap;
    const leftRoom = fold.x - 2 * gap;
    const isRight = rightRoom >= wanted || rightRoom >= leftRoom;
    const size = Math.min(wanted, isRight ? rightRoom : leftRoom);
    if (size < leastFlag) continue;
    const left = isRight ? fold.x + fold.width + gap : fold.x - gap - size;
    const covers = (line: number): boolean =>
      placed.some(
        (one) => one.line === line && one.left < left + size + gap && left < one.left + one.width + gap,
      );
    const line = [0, 1, 2].find((each) => each < mostLines && !covers(each));
    if (line !== undefined) placed.push({ fold, text, left, width: size, line });
  }
  return placed;
}
