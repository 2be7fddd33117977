import type { RunView } from "../../../../src/surfaces/view/run-view.ts";
import type { JSX } from "preact";
import { clock, counted, downTime, span } from "../../../base/format.ts";
import type { Fold, TimeScale } from "../../../model/time/time-scale.ts";
import { flagPlaces } from "./track-paths.ts";

/** Room that the label of a time needs. */
const tickWidth = 48;
const letterWidth = 6.2;

/** A time of the axis. Times that are less than a second apart are not shown as a clock, on which they are equal. */
function tickText(ms: number, tickMs: number): string {
  if (tickMs >= 1_000) return clock(ms);
  return tickMs < 100 ? `${ms} ms` : `${(ms / 1_000).toFixed(1)} s`;
}

/** Returns those labels of the axis that touch neither a fold nor the end of the axis. */
export function tickLabels(scale: TimeScale): readonly { readonly x: number; readonly text: string }[] {
  const { ticks, tickMs, folds, width } = scale;
  return ticks
    .map((tick) => ({ x: scale.xOfActive(tick), text: tickText(tick, tickMs) }))
    .filter(({ x, text }) => {
      const end = x + 4 + text.length * letterWidth;
      return x < width - tickWidth && folds.every((fold) => end < fold.x || x >= fold.x + fold.width);
    });
}

/** How many steps were free, in a chip of a width. */
function freeWords(count: number, width: number): string {
  const words = `${count} free`;
  return words.length * 6 + 4 <= width ? words : String(count);
}

/**
 * Shows the times of the axis, and the duration of each crash and each folded wait. For a crash or wait that is not
 * over at the shown event, the end is missing.
 */
export function AxisLabels({ scale, seq }: { readonly scale: TimeScale; readonly seq: number }): JSX.Element {
  return (
    <>
      {tickLabels(scale).map(({ x, text }) => (
        <span key={x} class="tick" style={{ left: `${x}px` }}>
          {text}
        </span>
      ))}
      {scale.folds.map((fold) => (
        <span
          key={fold.seq}
          class={`tick ${fold.kind === "crash" ? "bad" : "wait-length"}`}
          style={{ left: `${fold.x}px`, width: `${fold.width}px` }}
        >
          {fold.kind === "wait"
            ? span(fold.toAt - fold.fromAt)
            : fold.seq > seq
              ? "no owner"
              : downTime(fold.toAt - fold.fromAt)}
        </span>
      ))}
    </>
  );
}

/** A line at every time of the axis, behind all lanes. */
export function GridLines({
  scale,
  left,
}: {
  readonly scale: TimeScale;
  readonly left: number;
}): JSX.Element {
  return (
    <>
      {scale.ticks.map((tick) => (
        <i key={tick} class="grid-line" style={{ left: `${left + scale.xOfActive(tick)}px` }} />
      ))}
    </>
  );
}

/** Shows the calls of an agent that the new owner read from the journal instead of repeating them. */
export function Free({ fold, count }: { readonly fold: Fold; readonly count: number }): JSX.Element | null {
  const width = Math.max(16, fold.width - 8);
  return count === 0 ? null : (
    <span
      class="free"
      title={`${counted(count, "step")} free`}
      style={{ left: `${fold.x + (fold.width - width) / 2}px`, width: `${width}px` }}
    >
      {freeWords(count, width)}
    </span>
  );
}

/**
 * Shows the torn edges of a crash across all lanes, with a description. A crash that is not over has no right edge.
 */
export function Seams({
  scale,
  view,
  left,
  plot,
  ownerless,
  isDead,
  onUnfold,
}: {
  readonly scale: TimeScale;
  readonly view: RunView;
  readonly left: number;
  /** Width of the plot. While no worker owns the run, the scale ends before the end of the plot. */
  readonly plot: number;
  /** Explains what it means that no worker owns the run. */
  readonly ownerless: string;
  readonly isDead: boolean;
  /** Draws waits as long as they were. */
  readonly onUnfold: () => void;
}): JSX.Element {
  const open = {
    kind: "crash" as const,
    seq: view.seq + 1,
    x: scale.width,
    width: plot - scale.width,
    fromAt: view.at,
    toAt: view.at,
  };
  const crashes = scale.folds.filter(({ kind }) => kind === "crash");
  const flags: { fold: Fold; text: string }[] = crashes.flatMap((fold) => {
    const crash = view.recoveries.find(({ seq }) => seq === fold.seq);
    if (crash === undefined) return fold.seq > view.seq ? [{ fold, text: ownerless }] : [];
    const lost = crash.lost === 0 ? "" : `, ${counted(crash.lost, "call")} without an answer`;
    const free = `${counted(crash.replayed, "step")} free${lost}`;
    return [
      {
        fold,
        text: `a worker died; another one continued after ${downTime(fold.toAt - fold.fromAt)}: ${free}`,
      },
    ];
  });
  if (isDead) flags.push({ fold: open, text: ownerless });
  return (
    <>
      {scale.folds
        .filter(({ kind }) => kind === "wait")
        .map((fold) => (
          <button
            key={fold.seq}
            class="folded-wait"
            title={`All agents waited for ${span(fold.toAt - fold.fromAt)}. Click or press U to show it in full.`}
            aria-label={`All agents waited for ${span(fold.toAt - fold.fromAt)}. Show it in full.`}
            style={{ left: `${left + fold.x}px`, width: `${fold.width}px` }}
            onClick={onUnfold}
          />
        ))}
      {crashes.map((fold) => (
        <div
          key={fold.seq}
          class="seam"
          style={{ left: `${left + fold.x}px`, width: `${fold.width}px` }}
          aria-hidden="true"
        >
          <svg width="6" height="100%">
            <rect width="6" height="100%" fill="url(#torn)" />
          </svg>
          <svg width="6" height="100%">
            <rect width="6" height="100%" fill="url(#torn)" />
          </svg>
        </div>
      ))}
      {isDead && (
        <div class="seam" style={{ left: `${left + open.x}px`, width: `${open.width}px` }} aria-hidden="true">
          <svg width="6" height="100%">
            <rect width="6" height="100%" fill="url(#torn)" />
          </svg>
        </div>
      )}
      {flagPlaces(flags, plot).map(({ fold, text, left: x, width, line }) => (
        <span
          key={fold.seq}
          class="flag"
          title={text}
          style={{ left: `${left + x}px`, maxWidth: `${width}px`, top: `${60 + 24 * line}px` }}
        >
          {text}
        </span>
      ))}
      <svg width="0" height="0" aria-hidden="true">
        <defs>
          <pattern
            id="in-flight"
            width="5"
            height="5"
            patternUnits="userSpaceOnUse"
            patternTransform="rotate(45)"
          >
            <rect class="hatch-ground" width="5" height="5" />
            <rect class="hatch-line" width="2" height="5" />
          </pattern>
          <pattern id="torn" width="6" height="12" patternUnits="userSpaceOnUse">
            <path class="torn-edge" d="M1 0 5 3 1 6 5 9 1 12" />
          </pattern>
        </defs>
      </svg>
    </>
  );
}
