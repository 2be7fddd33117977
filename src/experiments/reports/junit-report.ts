import type { TrialResult } from "../contract.ts";
import { passMark, type ExperimentReport } from "../report.ts";
import { meanOf } from "../statistics.ts";

/**
 * Reports as JUnit XML: one suite for each variant with one test for each case, and one suite for the gates. A case fails if the mean
 * of a scorer is below the `mean` of its gate, or below 0.5 without one. A case that could not be run is an error.
 */
export function junitReport(reports: readonly ExperimentReport[]): string {
  const suites = reports.flatMap(suitesOf).join("");
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n${suites}</testsuites>\n`;
}

function suitesOf(report: ExperimentReport): readonly string[] {
  const { result, gates } = report;
  const suites = result.variants.map((variant) =>
    suite(
      result.variants.length > 1 ? `${result.name}: ${variant}` : result.name,
      [...casesOf(result.results, variant)].map(([caseId, trials]) => caseTest(report, caseId, trials)),
    ),
  );
  if (gates.length > 0)
    suites.push(
      suite(
        `${result.name}: gates`,
        gates.map(({ scorer, variant, isPassed, text }) => ({
          name: result.variants.length > 1 ? `${scorer} of ${variant}` : scorer,
          className: `${result.name}.gates`,
          ms: 0,
          failures: isPassed ? [] : [text],
          errors: [],
          isSkipped: false,
        })),
      ),
    );
  if (report.missing > 0)
    suites.push(
      suite(`${result.name}: missing trials`, [
        {
          name: "all trials have a result",
          className: `${result.name}.run`,
          ms: 0,
          failures: [],
          errors: [`${report.missing} of ${result.expectedTrials} trials have no result`],
          isSkipped: false,
        },
      ]),
    );
  return suites;
}

interface Test {
  readonly name: string;
  readonly className: string;
  readonly ms: number;
  readonly failures: readonly string[];
  readonly errors: readonly string[];
  readonly isSkipped: boolean;
}

function casesOf(
  results: readonly TrialResult[],
  variant: string,
): ReadonlyMap<string, readonly TrialResult[]> {
  const cases = new Map<string, TrialResult[]>();
  for (const trial of results) {
    if (trial.variant !== variant) continue;
    const list = cases.get(trial.caseId);
    if (list === undefined) cases.set(trial.caseId, [trial]);
    else list.push(trial);
  }
  return cases;
}

function caseTest(
  { result, problems }: ExperimentReport,
  caseId: string,
  trials: readonly TrialResult[],
): Test {
  const [{ variant } = { variant: "" }] = trials;
  const failures: string[] = [];
  let isSkipped = true;
  for (const scorer of result.scorers) {
    const scores = trials.flatMap(({ scores: own }) =>
      Object.hasOwn(own, scorer) ? (own[scorer] ?? []) : [],
    );
    const values = scores.flatMap(({ score }) => score ?? []);
    if (values.length === 0) continue;
    isSkipped = false;
    const gate = Object.hasOwn(result.gates, scorer) ? result.gates[scorer] : undefined;
    const mean = meanOf(values);
    if (mean >= passMark(gate?.mean)) continue;
    const reasons = new Set(scores.flatMap(({ reason }) => reason ?? []));
    failures.push([`${scorer}: ${mean.toFixed(3)}`, ...reasons].join("\n"));
  }
  const errors = problems
    .filter((each) => each.caseId === caseId && each.variant === variant)
    .map(({ scorer, trial, message }) => `trial ${trial}${scorer === null ? "" : `, ${scorer}`}: ${message}`);
  const ms = trials.reduce((sum, { durationMs }) => sum + durationMs, 0);
  return { name: caseId, className: `${result.name}.${variant}`, ms, failures, errors, isSkipped };
}

function suite(name: string, tests: readonly Test[]): string {
  const failures = tests.filter((each) => each.errors.length === 0 && each.failures.length > 0).length;
  const errors = tests.filter((each) => each.errors.length > 0).length;
  const skipped = tests.filter(
    (each) => each.errors.length === 0 && each.failures.length === 0 && each.isSkipped,
  ).length;
  const ms = tests.reduce((sum, each) => sum + each.ms, 0);
  const head = `  <testsuite name=${quoted(name)} tests="${tests.length}" failures="${failures}" errors="${errors}" skipped="${skipped}" time="${time(ms)}">`;
  return `${head}\n${tests.map(testElement).join("")}  </testsuite>\n`;
}

/** A test has at most one outcome, as readers of the format expect: an error counts more than a failure. */
function testElement({ name, className, ms, failures, errors, isSkipped }: Test): string {
  const head = `    <testcase name=${quoted(name)} classname=${quoted(className)} time="${time(ms)}"`;
  const outcome =
    errors.length > 0
      ? element("error", errors)
      : failures.length > 0
        ? element("failure", failures)
        : isSkipped
          ? "      <skipped/>\n"
          : "";
  return outcome === "" ? `${head}/>\n` : `${head}>\n${outcome}    </testcase>\n`;
}

function element(tag: "error" | "failure", texts: readonly string[]): string {
  const [first = ""] = texts;
  return `      <${tag} message=${quoted(first)}>${escaped(texts.join("\n"))}</${tag}>\n`;
}

function time(ms: number): string {
  return (ms / 1000).toFixed(3);
}

function quoted(text: string): string {
  return `"${escaped(text).replaceAll("\n", "&#10;").replaceAll("\t", "&#9;")}"`;
}

/** Escapes a text for XML 1.0. Characters that no XML document may contain are replaced. */
function escaped(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[^\t\n\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]/gu, "\u{FFFD}")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
