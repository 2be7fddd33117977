import { forksIn } from "../../../src/surfaces/view/run-clock.ts";
import type { RunView } from "../../../src/surfaces/view/run-view.ts";

/** A crash or a wait on the time axis: a band of fixed width, regardless of its duration. */
export interface Fold {
  readonly kind: "crash" | "wait" | "fork";
  /** Event with which the run continued. */
  readonly seq: number;
  readonly fromAt: number;
  readonly toAt: number;
  /** Left edge and width in pixels. */
  readonly x: number;
  readonly width: number;
}

/** A part of the axis, in pixels. */
export interface Piece {
  readonly x: number;
  readonly width: number;
}

/** A moment of a run. If its time is that of a crash, `seq` decides on which side of the fold the moment is. */
export interface Moment {
  readonly at: number;
  readonly seq: number;
}

/** Maps times to pixels. Crashes and waits are drawn as narrow folds, so the axis is interrupted there. */
export interface TimeScale {
  readonly width: number;
  readonly folds: readonly Fold[];
  /**
   * The folds, and the starts of forks. The latter have no width, because the time since the last shared event is
   * left out.
   */
  readonly breaks: readonly Fold[];
  /** Returns the position of a moment. It is never inside a fold. */
  x(moment: Moment): number;
  /** Returns the position of a time after the start, if the time is counted without the folds. */
  xOfActive(activeMs: number): number;
  /** The time at a place. */
  timeAt(x: number): number;
  /** Returns the parts of a time span outside of the folds, each at least `narrowest` pixels wide. */
  pieces(from: Moment, to: Moment, narrowest: number): readonly Piece[];
  /** Times for labels in milliseconds after the start, counted without the folds, and the time between two labels. */
  readonly ticks: readonly number[];
  readonly tickMs: number;
}

const mostFoldShare = 0.4;

/** An event before which nothing happened since the time `lastAt`. */
interface Stop {
  readonly kind: Fold["kind"];
  readonly seq: number;
  readonly at: number;
  readonly lastAt: number;
}
type Times = Pick<RunView, "startedAt" | "recoveries" | "forkedFrom"> & Partial<Pick<RunView, "waits">>;

/** What a scale leaves out besides crashes. */
interface Folding {
  /** If a wait is not over: the time of the last event before it. `null` if an agent works. */
  readonly waitsSince?: number | null;
  /** Whether waits are drawn with their real length. */
  readonly isUnfolded?: boolean;
}

/**
 * Returns the time scale of a run from its start to `until`, on `width` pixels. `share` is the part of the width
 * for one fold.
 */
export function timeScale(
  view: Times,
  until: number,
  width: number,
  share: number,
  folding: Folding = {},
): TimeScale {
  const { startedAt } = view;
  const stops = stopsOf(view, until, folding);
  const count = stops.filter(({ kind }) => kind !== "fork").length;
  const foldWidth = count === 0 ? 0 : width * Math.min(share, mostFoldShare / count);
  const down = stops.reduce((sum, { at, lastAt }) => sum + (at - lastAt), 0);
  const active = Math.max(1, until - startedAt - down);
  const perMs = (width - foldWidth * count) / active;
  const breaks: Fold[] = [];
  let [time, left] = [startedAt, 0];
  for (const { kind, seq, at, lastAt } of stops) {
    left += (lastAt - time) * perMs;
    const wide = kind === "fork" ? 0 : foldWidth;
    breaks.push({ kind, seq, fromAt: lastAt, toAt: at, x: left, width: wide });
    left += wide;
    time = at;
  }
  const folds = breaks.filter(({ kind }) => kind !== "fork");
  const within = (x: number): number => Math.max(0, Math.min(width, x));
  const x = ({ at, seq }: Moment): number => {
    let [from, start] = [startedAt, 0];
    for (const fold of breaks) {
      if (seq < fold.seq) return within(Math.min(fold.x, start + (at - from) * perMs));
      [from, start] = [fold.toAt, fold.x + fold.width];
    }
    return within(Math.max(start, start + (at - from) * perMs));
  };
  const xOfActive = (activeMs: number): number => {
    const before = folds.filter((fold, at) => activeMs * perMs > fold.x - at * foldWidth + 1e-6).length;
    return within(activeMs * perMs + before * foldWidth);
  };
  const timeAt = (place: number): number => {
    let [from, start] = [startedAt, 0];
    for (const fold of breaks) {
      if (place <= fold.x) break;
      if (place < fold.x + fold.width) return fold.fromAt;
      [from, start] = [fold.toAt, fold.x + fold.width];
    }
    return from + (place - start) / perMs;
  };
  const pieces = (from: Moment, to: Moment, narrowest: number): readonly Piece[] => {
    const [first, last] = [x(from), Math.max(x(from), x(to))];
    const parts: Piece[] = [];
    let start = 0;
    for (const fold of breaks) {
      if (from.seq < fold.seq) parts.push(...pieceIn(start, fold.x, first, last, narrowest));
      start = fold.x + fold.width;
      if (to.seq < fold.seq) return parts;
    }
    return [...parts, ...pieceIn(start, width, first, last, narrowest)];
  };
  return { width, folds, breaks, x, xOfActive, timeAt, pieces, ...ticksOf(active, width) };
}

/** Duration from which a continuing wait is folded. Milliseconds. */
const shortestOpenWaitMs = 60_000;

/** Returns the times that a scale leaves out, in the order of the log. */
function stopsOf(
  view: Times,
  until: number,
  { waitsSince = null, isUnfolded = false }: Folding,
): readonly Stop[] {
  const crashes = view.recoveries
    .filter(({ isCrash }) => isCrash)
    .map(({ seq, at, lastAt }): Stop => ({ kind: "crash", seq, at, lastAt }));
  const forks = forksIn(view.forkedFrom)
    .filter(({ startedAt }) => startedAt <= until)
    .map(({ seq, startedAt: at, lastAt }): Stop => ({ kind: "fork", seq, at, lastAt }));
  const waits = isUnfolded ? [] : (view.waits ?? []).map((wait): Stop => ({ kind: "wait", ...wait }));
  const isOpen = !isUnfolded && waitsSince !== null && until - waitsSince >= shortestOpenWaitMs;
  const open: readonly Stop[] = isOpen
    ? [{ kind: "wait", seq: Infinity, at: until, lastAt: waitsSince }]
    : [];
  return [...crashes, ...forks, ...waits, ...open].toSorted((one, other) => one.seq - other.seq);
}

/**
 * Returns the part of a span in a stretch between two folds. If the part is too narrow, it is widened, but not into
 * a fold.
 */
function pieceIn(
  left: number,
  right: number,
  first: number,
  last: number,
  narrowest: number,
): readonly Piece[] {
  if (last < left || first > right) return [];
  const [from, to] = [Math.max(left, first), Math.min(right, last)];
  const width = Math.max(narrowest, to - from);
  return [{ x: Math.max(0, Math.min(from, right - width)), width }];
}

const steps = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000,
  600_000, 1_800_000, 3_600_000, 7_200_000, 14_400_000, 43_200_000, 86_400_000,
];

function ticksOf(active: number, width: number): Pick<TimeScale, "ticks" | "tickMs"> {
  const most = Math.max(2, Math.floor(width / 100));
  const tickMs = steps.find((each) => active / each <= most) ?? 86_400_000;
  const count = Math.min(100, Math.floor(active / tickMs) + 1);
  return { tickMs, ticks: Array.from({ length: count }, (_each, at) => at * tickMs) };
}

/**
 * Returns the scale as it is drawn at an event: later crashes and waits have their place on the axis, but are not
 * drawn as folds. While no worker owns the run (`isDead`), the next fold is shown.
 */
export function scaleAt(scale: TimeScale, seq: number, isDead: boolean): TimeScale {
  const next = scale.folds.find((fold) => fold.kind === "crash" && fold.seq > seq);
  const folds = scale.folds.filter(
    (fold) => fold.seq <= seq || fold.seq === Infinity || (isDead && fold === next),
  );
  return { ...scale, folds };
}

/** Whether an element of a width can be placed at a position: inside the axis, and without touching a fold. */
export function isClear({ folds, width: end }: TimeScale, x: number, width: number): boolean {
  return x >= 0 && x + width <= end && folds.every((fold) => x >= fold.x + fold.width || x + width <= fold.x);
}

/** Returns the first position at or after `x` at which an element of a width does not touch a fold. */
export function clearOfFolds(folds: readonly Fold[], x: number, width: number): number {
  let place = x;
  for (const fold of folds)
    if (place < fold.x + fold.width && place + width > fold.x) place = fold.x + fold.width + x;
  return place;
}
