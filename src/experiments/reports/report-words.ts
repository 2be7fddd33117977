import { visibleLine } from "../../kernel/index.ts";
import { shownScore } from "../gates.ts";
import type { CaseChange, ExperimentReport, FailedCase, Problem, ScorerRow } from "../report.ts";
import { reliableFrom, type Estimate } from "../statistics.ts";

/** Longest text of a reason or an error in a report for people. */
const longest = 300;

/**
 * Returns a text of an agent or a case as one line, without characters that hide or control anything, and shortened
 * if it is long.
 */
export function line(text: string): string {
  const shown = visibleLine(text).trim();
  return shown.length > longest ? `${shown.slice(0, longest - 1)}…` : shown;
}

/** A case, with its variant if the experiment has several. */
export function caseName(
  { result }: ExperimentReport,
  { caseId, variant }: { readonly caseId: string; readonly variant: string },
): string {
  return line(result.variants.length > 1 ? `${caseId} (${variant})` : caseId);
}

/** Returns the cells of the table of scorers. The first row contains the titles. */
export function scorerCells(report: ExperimentReport): readonly (readonly string[])[] {
  const hasVariants = report.result.variants.length > 1;
  const head = ["scorer", ...(hasVariants ? ["variant"] : []), "mean", "95 % interval", "scored"];
  if (report.baseline !== null) head.push("difference", "95 % interval", "result");
  return [head, ...report.rows.map((row) => rowCells(report, row, hasVariants))];
}

function rowCells({ baseline }: ExperimentReport, row: ScorerRow, hasVariants: boolean): readonly string[] {
  const { estimate, difference } = row;
  const cells = [line(row.scorer)];
  if (hasVariants) cells.push(line(row.variant));
  cells.push(estimate === null ? "-" : shownScore(estimate.mean), interval(estimate), countText(row));
  if (baseline !== null)
    cells.push(
      difference === null ? "-" : signed(difference.mean),
      interval(difference, signed),
      row.verdict ?? "no common case",
    );
  return cells;
}

function countText({ scored, skipped, failed }: ScorerRow): string {
  const parts = [String(scored)];
  if (skipped > 0) parts.push(`${skipped} skipped`);
  if (failed > 0) parts.push(`${failed} failed`);
  return parts.join(", ");
}

function interval(estimate: Estimate | null, words: (score: number) => string = shownScore): string {
  return estimate === null ? "-" : `${words(estimate.low)} to ${words(estimate.high)}`;
}

/** A difference with its sign. */
function signed(score: number): string {
  const text = shownScore(score);
  if (Number(text) === 0) return "0.000";
  return score > 0 ? `+${text}` : text;
}

/** How a case has changed, in words. */
export function changeText({ scorer, before, after, didPass, passes, reason }: CaseChange): string {
  const state = didPass === passes ? "" : passes ? ", passes now" : ", fails now";
  const why = reason === null || after > before ? "" : `: ${line(reason)}`;
  return `${line(scorer)} ${shownScore(before)} -> ${shownScore(after)}${state}${why}`;
}

/** Why a case does not pass, in words. */
export function failureText({ scorer, mean, reason }: FailedCase): string {
  return `${line(scorer)} ${shownScore(mean)}${reason === null ? "" : `: ${line(reason)}`}`;
}

export function problemText({ scorer, trial, message }: Problem): string {
  return `trial ${trial}${scorer === null ? "" : `, scorer ${line(scorer)}`}: ${line(message)}`;
}

/** Returns warnings that a reader of the figures must know. */
export function cautions({ isUnreliable, missing, result }: ExperimentReport): readonly string[] {
  const lines: string[] = [];
  if (isUnreliable)
    lines.push(`The intervals are unreliable: the experiment has fewer than ${reliableFrom} cases.`);
  if (missing > 0)
    lines.push(
      `${missing} of ${result.expectedTrials} trials have no result, because the run ${line(result.runId)} has stopped as ${result.status}.`,
    );
  return lines;
}

/** Formats an amount of dollars with at most six decimals. `null` means an unknown amount. */
export function dollars(usd: number | null): string {
  if (usd === null) return "price unknown";
  return `$${usd.toFixed(usd > 0 && usd < 0.01 ? 6 : 4)}`;
}

/** A number of milliseconds as seconds. */
export function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
