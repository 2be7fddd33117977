import type { ExperimentReport } from "../report.ts";
import {
  caseName,
  cautions,
  changeText,
  dollars,
  failureText,
  line,
  problemText,
  scorerCells,
  seconds,
} from "./report-words.ts";

/** Largest number of cases that a list names. */
const most = 20;

/**
 * Returns the report for a terminal as lines: a table of scorers, changed cases, cases that failed to run, and the
 * gates.
 */
export function textReport(report: ExperimentReport): readonly string[] {
  const { result, baseline, variants, changes, failed, gates, problems } = report;
  const against = baseline === null ? "" : `, against baseline ${line(baseline)}`;
  const lines = [`${line(result.name)}: ${result.results.length} trials${against}`, ""];
  lines.push(...columns(scorerCells(report)), "");
  for (const each of variants)
    lines.push(
      `${variants.length > 1 ? `${line(each.variant)}: ` : ""}${dollars(each.costUsd)}, ${seconds(each.durationMs)} and ${each.turns.toFixed(1)} model calls per trial`,
    );
  lines.push(`Cost of the whole run: ${dollars(result.costUsd)}`, ...cautions(report));
  const fell = changes.filter(({ before, after }) => after < before);
  const rose = changes.filter(({ before, after }) => after > before).toReversed();
  lines.push(
    ...section(
      "Cases that got worse",
      fell.map((each) => `${caseName(report, each)}: ${changeText(each)}`),
    ),
    ...section(
      "Cases that got better",
      rose.map((each) => `${caseName(report, each)}: ${changeText(each)}`),
    ),
    ...section(
      "Cases that do not pass",
      failed.map((each) => `${caseName(report, each)}: ${failureText(each)}`),
    ),
    ...section(
      "Cases that failed to run",
      problems.map((each) => `${caseName(report, each)}: ${problemText(each)}`),
    ),
    ...section(
      "Gates",
      gates.map(({ isPassed, variant, text }) => {
        const of = variants.length > 1 ? `${line(variant)}: ` : "";
        return `${isPassed ? "passed" : "FAILED"}  ${of}${line(text)}`;
      }),
    ),
  );
  return lines;
}

function section(title: string, entries: readonly string[]): readonly string[] {
  if (entries.length === 0) return [];
  const more = entries.length > most ? [`  and ${entries.length - most} more`] : [];
  return ["", `${title}:`, ...entries.slice(0, most).map((each) => `  ${each}`), ...more];
}

/** Pads the cells of each row to the width of their columns. */
function columns(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = rows[0]?.map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0))) ?? [];
  return rows.map((row) =>
    row
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join("  ")
      .trimEnd(),
  );
}
