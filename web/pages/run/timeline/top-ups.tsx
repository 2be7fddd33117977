import type { TopUpPoint } from "../../../../src/surfaces/view/run-trace.ts";
import { addedWords, type TopUpName } from "../../../../src/surfaces/view/top-up-offer.ts";
import { personName } from "../../../base/format.ts";
import { isClear, type TimeScale } from "../../../model/time/time-scale.ts";
import type { JSX } from "preact";

/** The label of one top-up, or of several that are too close to have one each. */
export interface TopUpMark {
  readonly seq: number;
  /** Horizontal place of the first top-up. The label stands right of it, or left of it if the right has no room, such as before a folded part. */
  readonly x: number;
  readonly left: number;
  readonly width: number;
  readonly text: string;
  /** Who added what. */
  readonly title: string;
}

const letterWidth = 6.4;
const padding = 10;

/**
 * Returns the positions for the labels of top-ups inside the plot. Labels that would overlap are combined to one
 * with the sum.
 */
export function topUpMarks(points: readonly TopUpPoint[], scale: TimeScale): readonly TopUpMark[] {
  const marks: { readonly points: TopUpPoint[]; mark: TopUpMark }[] = [];
  for (const point of points) {
    const last = marks.at(-1);
    const own = markOf([point], scale);
    if (last === undefined || own.left >= last.mark.left + last.mark.width) {
      marks.push({ points: [point], mark: own });
      continue;
    }
    last.points.push(point);
    last.mark = markOf(last.points, scale);
  }
  return marks.map(({ mark }) => mark);
}

function markOf(points: readonly TopUpPoint[], scale: TimeScale): TopUpMark {
  const [first] = points;
  const { at, seq } = first ?? { at: 0, seq: 0 };
  const text = `+${amounts(points)}`;
  const x = scale.x({ at, seq });
  const width = Math.ceil(text.length * letterWidth) + padding;
  const left = isClear(scale, x, width) || !isClear(scale, x - width, width) ? x : x - width;
  const title = points.map((point) => `${personName(point.by)} added ${amounts([point])}`).join(", ");
  return { seq, x, left: Math.max(0, Math.min(left, scale.width - width)), width, text, title };
}

/** What top-ups added together. */
function amounts(points: readonly TopUpPoint[]): string {
  const sum = (name: TopUpName): number => points.reduce((total, { add }) => total + (add[name] ?? 0), 0);
  return addedWords({
    maxCostUsd: sum("maxCostUsd"),
    maxTurns: sum("maxTurns"),
    maxTokens: sum("maxTokens"),
    deadlineMs: sum("deadlineMs"),
  });
}

/** Shows the top-ups of an agent's budget: a line at the time of each, and the amount beside it. */
export function TopUps({
  points,
  scale,
}: {
  readonly points: readonly TopUpPoint[];
  readonly scale: TimeScale;
}): JSX.Element {
  return (
    <>
      {topUpMarks(points, scale).map(({ seq, x, left, width, text, title }) => (
        <span
          key={seq}
          class={`topped-up ${left < x ? "ends" : "starts"}`}
          style={{ left: `${left}px`, width: `${width}px` }}
          title={title}
        >
          {text}
        </span>
      ))}
    </>
  );
}
