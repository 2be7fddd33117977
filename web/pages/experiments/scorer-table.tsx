import type { JSX } from "preact";
import type { Experiment } from "../../api/types.ts";
import { counted, grouped } from "../../base/format.ts";
import { shownName } from "../../parts/name.tsx";
import { scoreText } from "../../parts/run-scores.tsx";
import { distribution } from "./worst-first.ts";

type Row = Experiment["report"]["rows"][number];

/** The scorers with their distribution, their mean, and what the difference to the other run shows. */
export function ScorerTable({ experiment }: { readonly experiment: Experiment }): JSX.Element {
  const { report, variants } = experiment;
  return (
    <section aria-labelledby="scorers">
      <h2 id="scorers">Scores</h2>
      <table class="table figure-cards scorers" aria-labelledby="scorers">
        <thead>
          <tr>
            <th>Scorer</th>
            {variants.length > 1 && <th>Variant</th>}
            <th>Cases from 0 to 1</th>
            <th class="right">Mean</th>
            <th>Difference</th>
          </tr>
        </thead>
        <tbody>
          {report.rows.map((row) => (
            <tr key={`${row.scorer} ${row.variant}`}>
              <td class="cut">{shownName(row.scorer)}</td>
              {variants.length > 1 && (
                <td class="cut" data-head="Variant">
                  {shownName(row.variant)}
                </td>
              )}
              <td data-head="Cases from 0 to 1">
                <Distribution experiment={experiment} row={row} />
              </td>
              <td class="right" data-head="Mean">
                {row.estimate === null ? (
                  <span class="dim">did not run</span>
                ) : (
                  <>
                    <b>{scoreText(row.estimate.mean)}</b>{" "}
                    <span class="dim">of {counted(row.estimate.count, "case")}</span>
                  </>
                )}
                {row.failed > 0 && <span class="sub bad">{counted(row.failed, "time")} failed</span>}
                {row.skipped > 0 && <span class="sub dim">{grouped(row.skipped)} skipped</span>}
              </td>
              <td data-head="Difference">
                <Difference row={row} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

const [partWidth, chartHeight] = [12, 28];

function Distribution({
  experiment: { rows, baselineRows },
  row: { scorer, variant },
}: {
  readonly experiment: Experiment;
  readonly row: Row;
}): JSX.Element {
  const now = distribution(rows, scorer, variant);
  const before = baselineRows === null ? null : distribution(baselineRows, scorer, variant);
  const most = Math.max(1, ...now, ...(before ?? []));
  const height = (count: number): number => (count === 0 ? 0 : Math.max(1, (count / most) * chartHeight));
  const label = now
    .flatMap((count, part) =>
      count === 0 ? [] : `${grouped(count)} from ${part / 10} to ${(part + 1) / 10}`,
    )
    .join(", ");
  return (
    <svg
      class="distribution"
      viewBox={`0 0 ${partWidth * 10} ${chartHeight + 2}`}
      width={partWidth * 10}
      height={chartHeight + 2}
      role="img"
      aria-label={`Cases by mean: ${label === "" ? "none" : label}`}
    >
      {now.map((count, part) => (
        <rect
          key={part}
          class="now"
          x={part * partWidth + 1}
          y={chartHeight - height(count)}
          width={partWidth - 2}
          height={height(count)}
        />
      ))}
      {before?.map((count, part) =>
        count === 0 ? null : (
          <line
            key={part}
            class="before"
            x1={part * partWidth}
            x2={(part + 1) * partWidth}
            y1={chartHeight - height(count)}
            y2={chartHeight - height(count)}
          />
        ),
      )}
      <line class="ground" x1="0" x2={partWidth * 10} y1={chartHeight + 0.5} y2={chartHeight + 0.5} />
    </svg>
  );
}

/** The interval of the difference on a scale from -1 to 1, and what it shows in words. */
function Difference({ row: { difference, verdict } }: { readonly row: Row }): JSX.Element {
  if (difference === null || verdict === null) return <span class="dim">–</span>;
  const { low, high, mean } = difference;
  const interval = `between ${signed(low)} and ${signed(high)}`;
  const words =
    verdict === "no difference shown"
      ? "No difference shown"
      : `${verdict === "worse" ? "Worse" : "Better"}: ${interval}`;
  return (
    <span class={`difference ${verdict === "worse" ? "bad" : ""}`}>
      <svg
        class="interval"
        viewBox="0 0 120 14"
        width="120"
        height="14"
        role="img"
        aria-label={`Difference ${signed(mean)}, ${interval}`}
      >
        <line class="ground" x1="2" x2="118" y1="7" y2="7" />
        <line class="zero" x1="60" x2="60" y1="1" y2="13" />
        <line class="span" x1={at(low)} x2={Math.max(at(high), at(low) + 1)} y1="7" y2="7" />
        <circle class="mean" cx={at(mean)} cy="7" r="3" />
      </svg>
      <span>{words}</span>
    </span>
  );
}

/** The place of a difference on the scale. */
function at(value: number): number {
  return 60 + value * 58;
}

function signed(value: number): string {
  const text = scoreText(value);
  return value > 0 && text !== "0" ? `+${text}` : text.replace("-", "−");
}
