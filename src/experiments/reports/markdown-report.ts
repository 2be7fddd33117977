import { endOf, type ExperimentReport } from "../report.ts";
import {
  caseName,
  cautions,
  changeText,
  dollars,
  failureText,
  problemText,
  scorerCells,
  seconds,
} from "./report-words.ts";

/** Largest number of cases that a list names. */
const most = 20;

const words = {
  passed: "passed",
  gate_failed: "a gate failed",
  incomplete: "cases failed to run",
} as const;

/**
 * Formats the report as Markdown, for a comment in a pull request. Names and texts of cases and agents are formatted as code, so
 * that no link, mention, image or HTML in them takes effect.
 */
export function markdownReport(report: ExperimentReport): string {
  const { result, baseline, variants, changes, failed, gates, problems } = report;
  const against = baseline === null ? "" : `, against baseline ${code(baseline)}`;
  const [head = [], ...rows] = scorerCells(report);
  const lines = [
    `### Experiment ${code(result.name)}: ${words[endOf(report)]}`,
    "",
    `${result.results.length} trials${against}. Cost of the whole run: ${dollars(result.costUsd)}.`,
    "",
    tableRow(head),
    tableRow(head.map(() => "---")),
    ...rows.map((cells) => tableRow(cells.map((cell, at) => (isName(head[at]) ? code(cell) : cell)))),
    "",
    ...variants.map(
      ({ variant, costUsd, durationMs, turns }) =>
        `- ${code(variant)}: ${dollars(costUsd)}, ${seconds(durationMs)} and ${turns.toFixed(1)} model calls per trial`,
    ),
    ...cautions(report).map((each) => `- ${code(each)}`),
  ];
  const fell = changes.filter(({ before, after }) => after < before);
  const rose = changes.filter(({ before, after }) => after > before).toReversed();
  const entry = (each: { readonly caseId: string; readonly variant: string }, text: string): string =>
    `- ${code(caseName(report, each))} ${code(text)}`;
  lines.push(
    ...section(
      "Gates",
      gates.map(
        ({ isPassed, variant, text }) =>
          `- ${isPassed ? "passed" : "**failed**"} ${code(variants.length > 1 ? `${variant}: ${text}` : text)}`,
      ),
    ),
    ...section(
      "Cases that got worse",
      fell.map((each) => entry(each, changeText(each))),
    ),
    ...section(
      "Cases that got better",
      rose.map((each) => entry(each, changeText(each))),
    ),
    ...section(
      "Cases that do not pass",
      failed.map((each) => entry(each, failureText(each))),
    ),
    ...section(
      "Cases that failed to run",
      problems.map((each) => entry(each, problemText(each))),
    ),
  );
  return `${lines.join("\n")}\n`;
}

function section(title: string, entries: readonly string[]): readonly string[] {
  if (entries.length === 0) return [];
  const more = entries.length > most ? [`- and ${entries.length - most} more`] : [];
  return ["", `**${title}**`, "", ...entries.slice(0, most), ...more];
}

function isName(head: string | undefined): boolean {
  return head === "scorer" || head === "variant";
}

function tableRow(cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |`;
}

/**
 * Formats a text as code. The fence is longer than every sequence of backticks in the text, and `|` does not end a
 * table cell.
 */
function code(text: string): string {
  const flat = text
    .replaceAll(/\s+/gu, " ")
    .trim()
    .replaceAll("|", String.raw`\|`);
  if (flat === "") return "";
  const longest = Math.max(0, ...(flat.match(/`+/gu) ?? []).map(({ length }) => length));
  const fence = "`".repeat(longest + 1);
  const pad = longest > 0 ? " " : "";
  return `${fence}${pad}${flat}${pad}${fence}`;
}
