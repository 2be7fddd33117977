import type { RunView } from "../../src/surfaces/view/run-view.ts";

/** A crash on the time axis: a band of fixed width, whatever it took. */
export interface Fold {
  readonly seq: number;
  readonly fromAt: number;
  readonly toAt: number;
  /** Left edge and width in pixels. */
  readonly x: number;
  readonly width: number;
}

/** Maps times to pixels. Crashes are folds, so that the axis has seams. */
export interface TimeScale {
  x(at: number): number;
  readonly folds: readonly Fold[];
  /** Times for labels, in milliseconds after the start. */
  readonly ticks: readonly number[];
}

const mostFoldShare = 0.4;

/** The scale of a run from its start to `until`, on `width` pixels. `share` is the width of one fold. */
export function timeScale(view: RunView, until: number, width: number, share: number): TimeScale {
  const crashes = view.recoveries.filter(({ isCrash }) => isCrash);
  const foldWidth = crashes.length === 0 ? 0 : width * Math.min(share, mostFoldShare / crashes.length);
  const down = crashes.reduce((sum, { at, lastAt }) => sum + (at - lastAt), 0);
  const active = Math.max(1, until - view.startedAt - down);
  const perMs = (width - foldWidth * crashes.length) / active;
  const folds: Fold[] = [];
  let [time, x] = [view.startedAt, 0];
  for (const { seq, at, lastAt } of crashes) {
    x += (lastAt - time) * perMs;
    folds.push({ seq, fromAt: lastAt, toAt: at, x, width: foldWidth });
    x += foldWidth;
    time = at;
  }
  const toX = (at: number): number => {
    let [from, left] = [view.startedAt, 0];
    for (const fold of folds) {
      if (at <= fold.fromAt) break;
      if (at < fold.toAt)
        return fold.x + (fold.width * (at - fold.fromAt)) / Math.max(1, fold.toAt - fold.fromAt);
      [from, left] = [fold.toAt, fold.x + fold.width];
    }
    return left + (at - from) * perMs;
  };
  return { x: toX, folds, ticks: ticksOf(active, width) };
}

const steps = [
  100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000,
  3_600_000, 7_200_000, 14_400_000, 43_200_000, 86_400_000,
];

function ticksOf(active: number, width: number): readonly number[] {
  const most = Math.max(2, Math.floor(width / 100));
  const step = steps.find((each) => active / each <= most) ?? 86_400_000;
  return Array.from({ length: Math.min(100, Math.floor(active / step) + 1) }, (_each, at) => at * step);
}
