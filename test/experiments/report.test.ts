import { mkdtemp, readdir, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { baselinePath, readBaseline, writeBaseline } from "../../src/experiments/baseline.ts";
import type { ExperimentResult, Score, TrialResult } from "../../src/experiments/contract.ts";
import { endOf, reportOf } from "../../src/experiments/report.ts";
import { junitReport } from "../../src/experiments/reports/junit-report.ts";
import { markdownReport } from "../../src/experiments/reports/markdown-report.ts";
import { textReport } from "../../src/experiments/reports/text-report.ts";
import type { RunId, TaskId } from "../../src/kernel/index.ts";

function score(value: number | null, rest: Partial<Score> = {}): Score {
  return { score: value, reason: null, metadata: null, error: null, ...rest };
}

function trial(caseId: string, scores: TrialResult["scores"], rest: Partial<TrialResult> = {}): TrialResult {
  return {
    caseId,
    variant: "base",
    trial: 1,
    taskId: "t1" as TaskId,
    status: "completed",
    output: "an answer",
    error: null,
    costUsd: 0.01,
    tokens: 10,
    turns: 1,
    durationMs: 500,
    tags: [],
    scores,
    ...rest,
  };
}

function resultOf(results: readonly TrialResult[], rest: Partial<ExperimentResult> = {}): ExperimentResult {
  return {
    name: "triage",
    runId: "run_1" as RunId,
    status: "completed",
    variants: ["base"],
    scorers: ["exact"],
    trials: 1,
    expectedTrials: results.length,
    results,
    gates: {},
    costUsd: 0.5,
    ...rest,
  };
}

/** An experiment of some cases, of which each has the mean that the function gives. */
function cases(
  count: number,
  of: (at: number) => number,
  rest: Partial<ExperimentResult> = {},
): ExperimentResult {
  return resultOf(
    Array.from({ length: count }, (_, at) => trial(`c${at}`, { exact: score(of(at)) })),
    rest,
  );
}

describe("reportOf()", () => {
  test("reportOf() averages the trials of each case before it takes the mean of the cases", () => {
    const result = resultOf([
      trial("a", { exact: score(1) }),
      trial("b", { exact: score(0) }),
      trial("b", { exact: score(0) }, { trial: 2 }),
      trial("b", { exact: score(0) }, { trial: 3 }),
    ]);
    expect(reportOf(result).rows[0]).toMatchObject({ estimate: { mean: 0.5, count: 2 }, scored: 4 });
  });

  test("reportOf() does not count skipped scores and failed scorers as zero", () => {
    const result = resultOf([
      trial("a", { exact: score(1) }),
      trial("b", { exact: score(null) }),
      trial("c", { exact: score(null, { error: "no key" }) }),
    ]);
    const report = reportOf(result);
    expect(report.rows[0]).toMatchObject({ estimate: { mean: 1 }, scored: 1, skipped: 1, failed: 1 });
    expect(report.problems).toEqual([
      { caseId: "c", variant: "base", trial: 1, scorer: "exact", message: "no key" },
    ]);
    expect(endOf(report)).toBe("incomplete");
  });

  test("reportOf() compares with a baseline case by case, and an interval that contains 0 shows no difference", () => {
    const before = cases(60, (at) => (at % 2 === 0 ? 1 : 0));
    const same = reportOf(
      cases(60, (at) => (at < 2 ? 1 - ((at + 1) % 2) : at % 2 === 0 ? 1 : 0)),
      {
        name: "main",
        result: before,
      },
    );
    expect(same.rows[0]).toMatchObject({ verdict: "no difference shown", difference: { mean: 0 } });
    const better = reportOf(
      cases(60, (at) => (at % 2 === 0 || at < 30 ? 1 : 0)),
      {
        name: "main",
        result: before,
      },
    );
    expect(better.rows[0]).toMatchObject({ verdict: "better", difference: { mean: 0.25 } });
    const worse = reportOf(before, { name: "main", result: better.result });
    expect(worse.rows[0]).toMatchObject({ verdict: "worse" });
    expect(worse.isUnreliable).toBe(false);
  });

  test("reportOf() names the cases that rose or fell with their pass state, and the largest fall first", () => {
    const gates = { exact: { mean: 0.8 } };
    const report = reportOf(
      resultOf(
        [
          trial("fell a little", { exact: score(0.9) }),
          trial("fell far", { exact: score(0.1, { reason: "wrong town" }) }),
          trial("rose", { exact: score(0.8) }),
          trial("same", { exact: score(0.5) }),
          trial("new", { exact: score(0) }),
        ],
        { gates },
      ),
      {
        name: "main",
        result: resultOf([
          trial("fell a little", { exact: score(1) }),
          trial("fell far", { exact: score(0.9) }),
          trial("rose", { exact: score(0.2) }),
          trial("same", { exact: score(0.5) }),
        ]),
      },
    );
    expect(report.changes.map(({ caseId, didPass, passes }) => [caseId, didPass, passes])).toEqual([
      ["fell far", true, false],
      ["fell a little", true, true],
      ["rose", false, true],
    ]);
    const text = textReport(report).join("\n");
    expect(text).toContain("fell far: exact 0.900 -> 0.100, fails now: wrong town");
    expect(text).toContain("rose: exact 0.200 -> 0.800, passes now");
    expect(text).toContain("The intervals are unreliable: the experiment has fewer than 30 cases.");
  });

  test("reportOf() compares a variant with the only variant of a baseline, also under another name", () => {
    const renamed = cases(3, () => 1, { variants: ["old"] });
    const results = renamed.results.map((each) => ({ ...each, variant: "old" }));
    const report = reportOf(
      cases(3, () => 0),
      { name: "main", result: { ...renamed, results } },
    );
    expect(report.rows[0]).toMatchObject({ difference: { mean: -1 }, verdict: "worse" });
  });
});

describe("gates on the scores of an experiment", () => {
  test("a gate on the mean score of an experiment fails below its value and passes at it", () => {
    const gates = { exact: { mean: 0.9 } };
    const held = reportOf(cases(10, (at) => (at === 0 ? 0 : 1), { gates }));
    expect(held.gates).toMatchObject([{ isPassed: true }]);
    expect(endOf(held)).toBe("passed");
    const failed = reportOf(cases(10, (at) => (at < 2 ? 0 : 1), { gates }));
    expect(failed.gates).toEqual([
      {
        scorer: "exact",
        variant: "base",
        isPassed: false,
        text: "exact: the mean is 0.800, and must be at least 0.9",
      },
    ]);
    expect(endOf(failed)).toBe("gate_failed");
    expect(textReport(failed).join("\n")).toContain("FAILED  exact: the mean is 0.800");
  });

  test("a gate on the drop of a score compares with the baseline, and is refused without one", () => {
    const gates = { exact: { maxDrop: 0.05 } };
    const before = cases(20, () => 1);
    expect(() => reportOf(cases(20, () => 1, { gates }))).toThrow("gate exact has maxDrop");
    const at = (drop: number): boolean =>
      reportOf(
        cases(20, (each) => (each === 0 ? 1 - drop * 20 : 1), { gates }),
        {
          name: "main",
          result: before,
        },
      ).gates.every(({ isPassed }) => isPassed);
    expect(at(0.05)).toBe(true);
    expect(at(0.049)).toBe(true);
    expect(at(0.0501 / 1.0)).toBe(false);
  });

  test("a gate of an experiment fails if no case was scored", () => {
    const report = reportOf(
      resultOf([trial("a", { exact: score(null) })], { gates: { exact: { mean: 0 } } }),
    );
    expect(report.gates).toMatchObject([
      { isPassed: false, text: "exact: no case was scored, and the mean must be at least 0" },
    ]);
  });

  test("an experiment that stopped at its cap is incomplete, and its report says what is missing", () => {
    const report = reportOf(cases(2, () => 1, { expectedTrials: 5, status: "budget_exhausted" }));
    expect(endOf(report)).toBe("incomplete");
    expect(textReport(report).join("\n")).toContain(
      "3 of 5 trials have no result, because the run run_1 has stopped as budget_exhausted.",
    );
    expect(junitReport([report])).toContain("3 of 5 trials have no result");
  });
});

describe("experiment reports with hostile texts", () => {
  const hostile = "x</testcase>&\"'\u0000\u001B[31m\uD800|`code`\n# h @team <img src=x> [l](http://x)";
  const report = reportOf(
    resultOf(
      [
        trial(hostile, { [hostile]: score(0, { reason: hostile }) }),
        trial("b", { [hostile]: score(null, { error: hostile }) }),
        trial("c", {}, { status: "failed", error: hostile }),
      ],
      { name: hostile, scorers: [hostile], gates: { [hostile]: { mean: 0.5 } } },
    ),
    {
      name: "main",
      result: resultOf([trial(hostile, { [hostile]: score(1) })], { scorers: [hostile] }),
    },
  );

  test("the experiment report for a terminal has no control character and no additional line from hostile texts", () => {
    for (const line of textReport(report)) expect(line).not.toMatch(/[\p{Cc}\p{Cs}]/u);
  });

  test("the JUnit report of an experiment is well-formed XML with every test in it", () => {
    const xml = junitReport([report]);
    expect(wellFormed(xml)).toBeUndefined();
    expect(xml.match(/<testcase /gu)).toHaveLength(4);
    expect(xml).toContain('tests="3" failures="1" errors="2" skipped="0"');
    expect(xml.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\p{Cs}]/u);
  });

  test("the Markdown report of an experiment keeps hostile texts in code, and its tables in their columns", () => {
    const markdown = markdownReport(report);
    const outside = markdown.replaceAll(/(`+)(?!`)[\s\S]*?(?<!`)\1(?!`)/gu, "");
    expect(outside).not.toMatch(/@team|<img|\]\(http|\n# h/u);
    const table = markdown.split("\n").filter((line) => line.startsWith("|"));
    const widths = table.map((line) => line.replaceAll(String.raw`\|`, "").split("|").length);
    expect(new Set(widths).size).toBe(1);
  });
});

/** Returns the first problem of an XML document: a tag that is not closed, or a character that must be escaped. */
function wellFormed(xml: string): string | undefined {
  const open: string[] = [];
  const body = xml.replace(/^<\?xml [^?]*\?>\n/u, "");
  for (const [part] of body.matchAll(/<[^>]*>|[^<]+/gu)) {
    if (part.startsWith("</")) {
      const expected = open.pop();
      if (part !== `</${expected}>`) return `${part} closes ${expected}`;
    } else if (part.startsWith("<")) {
      const [, name, attributes = "", end] = /^<([a-z]+)((?: [a-z]+="[^"<]*")*)(\/?)>$/u.exec(part) ?? [];
      if (name === undefined) return `broken tag ${part}`;
      if (/&(?!(?:amp|lt|gt|quot|#\d+);)/u.test(attributes)) return `unescaped ${attributes}`;
      if (end === "") open.push(name);
    } else if (/&(?!(?:amp|lt|gt|quot|#\d+);)|>/u.test(part)) return `unescaped ${part}`;
  }
  return open.length === 0 ? undefined : `open: ${open.join()}`;
}

describe("baselines of experiments", () => {
  test("a baseline of an experiment is written as a whole, and read again", async () => {
    const folder = await mkdtemp(join(tmpdir(), "reeve-baseline-"));
    const path = baselinePath(folder, "main");
    const result = cases(3, () => 1);
    await writeBaseline(
      path,
      cases(2, () => 0),
    );
    await writeBaseline(path, result);
    expect(await readBaseline(path)).toEqual(result);
    expect(await readdir(join(folder, "evals", "baselines"))).toEqual(["main.json"]);
    expect(await readFile(path, "utf8")).toMatch(/\n$/u);
  });

  test("a baseline that is missing or broken is an error that says how to write the baseline", async () => {
    const folder = await mkdtemp(join(tmpdir(), "reeve-baseline-"));
    const path = join(folder, "x.json");
    await expect(readBaseline(path)).rejects.toThrow(`the baseline ${path} does not exist; write it with`);
    for (const [text, why] of [
      ["{", "it is not JSON"],
      ["{}", "it has no name"],
      ['{"name":"a","variants":[],"scorers":[],"results":[{}]}', "results[0] is no trial"],
    ] as const) {
      await writeFile(path, text);
      await expect(readBaseline(path)).rejects.toThrow(why);
    }
    expect(() => baselinePath(folder, "../main")).toThrow('invalid name "../main" of a baseline');
  });
});
