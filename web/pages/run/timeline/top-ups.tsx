import type { JSX } from "preact";
import type { TopUpPoint } from "../../../../src/surfaces/view/run-trace.ts";
import type { TimeScale } from "../../../model/time-scale.ts";
import { topUpMarks } from "./top-up-marks.ts";

/** What was added to the budget of an agent: a line at its time, and the amount beside it. */
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
