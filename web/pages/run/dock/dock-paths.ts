import type { RunView } from "../../../../src/surfaces/view/run-view.ts";
import type { RunTrace } from "../../../../src/surfaces/view/run-trace.ts";
import type { TimeScale } from "../../../model/time/time-scale.ts";

const height = 32;
const tallest = 22;
/** A run of few events has few spans. Its bars do not grow wider than this. */
const widest = 10;

/** The density of events, up to the event that is shown and after it. No bar is in a fold. */
export function densityPaths(
  trace: Pick<RunTrace, "density" | "spanMs" | "lastSeqs">,
  scale: TimeScale,
  shownSeq: number,
): { readonly shown: string; readonly later: string } {
  const { density, spanMs, lastSeqs } = trace;
  const highest = Math.max(1, ...density);
  const paths = { shown: "", later: "" };
  for (const [at, count] of density.entries()) {
    if (count === 0) continue;
    const left = scale.xOfActive(at * spanMs);
    const right = scale.folds.reduce(
      (edge, { x }) => (x >= left && x < edge ? x : edge),
      scale.xOfActive((at + 1) * spanMs),
    );
    const width = Math.max(1, Math.min(widest, 0.75 * (right - left)));
    const tall = 2 + (tallest * Math.sqrt(count)) / Math.sqrt(highest);
    const start = Math.min(left, scale.width - width);
    const bar = `M${start.toFixed(1)} ${height}v${(-tall).toFixed(1)}h${width.toFixed(1)}v${tall.toFixed(1)}z`;
    paths[(lastSeqs[at - 1] ?? -1) < shownSeq ? "shown" : "later"] += bar;
  }
  return paths;
}

/** The place of a time of which no event is known: the time of a crash counts as the left edge of its fold. */
export function placeOf(scale: TimeScale, at: number): number {
  const before = scale.breaks.find(({ fromAt, toAt }) => at <= fromAt || at < toAt);
  return scale.x({ at, seq: before === undefined ? Infinity : before.seq - 1 });
}

/**
 * The time at which the dock ends. While a run waits for a person it has no events, and the wait is drawn for at most as
 * long as the run lasted before, so that its events stay readable.
 */
export function dockEnd(
  { startedAt, at, endedAt, questions }: Pick<RunView, "startedAt" | "at" | "endedAt" | "questions">,
  now: number,
): number {
  const last = Math.max(at, startedAt + 1);
  if (endedAt !== null || questions === 0) return last;
  return Math.max(last, Math.min(now, last + (last - startedAt)));
}
