import type { JSX } from "preact";
import { changeOf, leftOut, timeLabel, type Measure, type Series } from "../../model/usage-series.ts";
import { highestOf, UsageChart } from "./usage-chart.tsx";

interface PanelOptions {
  readonly measure: Measure;
  readonly series: Series;
  readonly times: readonly string[];
  readonly open: number | null;
  readonly marked: number | null;
  readonly isTable: boolean;
  readonly onMark: (place: number | null) => void;
  readonly onOpen: (place: number) => void;
}

/** Shows one measure over time: its figure, a description of its change, and its chart or its numbers. */
export function UsagePanel(options: PanelOptions): JSX.Element {
  const { measure, series, times, open, marked, isTable, onMark, onOpen } = options;
  const { title, id, isSum } = measure;
  const [now, before] = [measure.at(series.now), measure.at(series.before)];
  const value = measure.value(series.sum);
  const { words, direction } = changeOf(measure, series);
  const without = direction === 0 || open === null ? "" : leftOut(times[open]);
  const highest = highestOf(now, before);
  const isBad = id === "failures";
  const [known, knownBefore] = [measure.known(series.now), measure.known(series.before)];
  const textAt = (values: typeof now, isRecorded: typeof known, at: number): string => {
    const each = values[at] ?? null;
    if (each !== null) return measure.text(each);
    return isRecorded[at] == null ? "not recorded" : (measure.nothing ?? "none");
  };
  /** Whether the label of the marked time would cover the one at an end of the axis. */
  const isNear = (place: number | null, end: number): boolean =>
    place !== null && Math.abs(place - end) <= times.length * 0.3;
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : undefined;
    if (event.key === "Enter" && marked !== null && event.target === event.currentTarget) onOpen(marked);
    if (step === undefined) return;
    event.preventDefault();
    const from = marked ?? (step > 0 ? -1 : times.length);
    onMark(Math.max(0, Math.min(times.length - 1, from + step)));
  };
  const sentence = [
    `${title} from ${timeLabel(times[0] ?? "")} to ${timeLabel(times.at(-1) ?? "")}: ${value === null ? missing(measure, series) : `${measure.text(value)} ${measure.aside(series.sum)}`}.`,
    `${words}${without === "" ? "" : `, ${without}`}.`,
    `The highest value is ${measure.text(highest)}.`,
  ].join(" ");
  return (
    <section
      class="usage-panel"
      aria-label={title}
      tabIndex={0}
      onKeyDown={onKeyDown}
      onBlur={() => onMark(null)}
    >
      <h2 class="label">{title}</h2>
      <p class="row">
        <b class="big">{value === null ? "–" : measure.text(value)}</b>
        <span class="dim">{value === null ? missing(measure, series) : measure.aside(series.sum)}</span>
      </p>
      <p class={`change${isBad && direction > 0 ? " bad" : ""}`}>
        {direction !== 0 && <span aria-hidden="true">{direction > 0 ? "\u2191" : "\u2193"} </span>}
        {words}
        {without !== "" && <span class="dim">, {without}</span>}
      </p>
      {isTable ? (
        <div class="usage-numbers">
          <table class="table dense">
            <thead>
              <tr>
                <th>Time (UTC)</th>
                <th class="right">Now</th>
                <th class="right">Before</th>
              </tr>
            </thead>
            <tbody>
              {times.map((time, at) => (
                <tr key={time}>
                  <td>
                    {timeLabel(time)}
                    {at === open ? ", so far" : ""}
                  </td>
                  <td class="right">{textAt(now, known, at)}</td>
                  <td class="right dim">{textAt(before, knownBefore, at)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : (
        <>
          <span class="scale dim">{highest > 0 ? measure.text(highest) : "\u00a0"}</span>
          <UsageChart
            {...{ now, before, highest, isSum, isBad, open, marked, onMark, onOpen }}
            isKnown={(at) => known[at] != null}
            label={sentence}
          />
          <p class="usage-axis dim">
            <span class={isNear(marked, 0) ? "covered" : ""}>{timeLabel(times[0] ?? "")}</span>
            {marked !== null && (
              <span
                class="marked"
                style={{
                  left: `clamp(60px, ${((marked + 0.5) / times.length) * 100}%, calc(100% - 60px))`,
                }}
              >
                {timeLabel(times[marked] ?? "")}, {textAt(now, known, marked)}
              </span>
            )}
            <span class={isNear(marked, times.length - 1) ? "covered" : ""}>
              {open === times.length - 1
                ? times[0]?.includes("T")
                  ? "this hour so far"
                  : "today so far"
                : timeLabel(times.at(-1) ?? "")}
            </span>
          </p>
        </>
      )}
    </section>
  );
}

/** Why there is no figure. */
function missing({ id, nothing = "" }: Measure, { sum }: Series): string {
  return id !== "cache" && sum.details === null ? "not recorded" : nothing;
}
