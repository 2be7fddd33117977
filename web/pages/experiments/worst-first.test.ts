import { expect, test } from "vitest";
import type { Experiment } from "../../api/types.ts";
import { distribution, inShownOrder, onlyBefore, worstFirst } from "./worst-first.ts";

type Row = Experiment["rows"][number];

/** A case with the mean of the scorer `exact` by variant. */
function row(caseId: string, means: Readonly<Record<string, number | null>>): Row {
  const cells = Object.entries(means).map(([variant, exact]) => ({
    variant,
    trials: 1,
    unanswered: 0,
    costUsd: 0,
    durationMs: 0,
    scores: { exact },
  }));
  return { caseId, cells };
}

function linesOf(rows: readonly Row[], baselineRows: readonly Row[] | null): unknown {
  const experiment = { rows, baselineRows, variants: ["a", "b"] } as unknown as Experiment;
  return worstFirst(experiment).map(({ row: { caseId }, change, lowest, before }) => [
    caseId,
    change,
    lowest,
    before !== null,
  ]);
}

test("the page sorts experiment cases by the largest fall against the other run, else by their lowest score", () => {
  const now = [row("same", { a: 1 }), row("fell", { a: 0.5 }), row("rose", { a: 1 }), row("new", { a: 0 })];
  const before = [row("same", { a: 1 }), row("fell", { a: 1 }), row("rose", { a: 0 })];
  expect(linesOf(now, before)).toEqual([
    ["fell", -0.5, 0.5, true],
    ["new", null, 0, false],
    ["same", 0, 1, true],
    ["rose", 1, 1, true],
  ]);
});

test("the page compares the variants of an experiment with the first one if no other run is chosen", () => {
  const now = [
    row("worse", { a: 1, b: 0.25 }),
    row("lost", { a: 1, b: null }),
    row("low", { a: 0.5, b: 0.5 }),
  ];
  expect(linesOf(now, null)).toEqual([
    ["worse", -0.75, 0.25, false],
    ["low", 0, 0.5, false],
    ["lost", null, 1, false],
  ]);
});

test("the page keeps the order of experiment cases that were shown, and adds new cases with the worst first", () => {
  const rows = [row("c", { a: 0.5 }), row("b", { a: 1 }), row("a", { a: 0.25 }), row("d", { a: 0 })];
  const experiment = { rows, baselineRows: null, variants: ["a"] } as unknown as Experiment;
  const lines = inShownOrder(worstFirst(experiment), ["b", "c"]);
  expect(lines.map(({ row: { caseId } }) => caseId)).toEqual(["b", "c", "d", "a"]);
});

test("the page finds an experiment case of the other run that this run does not have", () => {
  const [both, old] = [row("both", { a: 1 }), row("old", { a: 1 })];
  const experiment = { rows: [both, row("new", { a: 1 })], baselineRows: [both, old] };
  expect(onlyBefore(experiment as unknown as Experiment)).toEqual([old]);
});

test("a distribution on the page counts the cases of a variant in ten parts, and a mean of 1 in the last part", () => {
  const now = [row("a", { a: 0, b: 1 }), row("b", { a: 1 }), row("c", { a: 0.95 }), row("d", { a: null })];
  expect(distribution(now, "exact", "a")).toEqual([1, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
});
