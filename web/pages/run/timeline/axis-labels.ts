import { clock } from "../../../base/format.ts";
import type { TimeScale } from "../../../model/time-scale.ts";

/** Room that the label of a time needs. */
const tickWidth = 48;
const letterWidth = 6.2;

/** A time of the axis. Times that are less than a second apart are not shown as a clock, on which they are equal. */
function tickText(ms: number, tickMs: number): string {
  if (tickMs >= 1_000) return clock(ms);
  return tickMs < 100 ? `${ms} ms` : `${(ms / 1_000).toFixed(1)} s`;
}

/** The labels of the axis that neither touch a fold nor the end of the axis. */
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
export function freeWords(count: number, width: number): string {
  const words = `${count} free`;
  return words.length * 6 + 4 <= width ? words : String(count);
}
