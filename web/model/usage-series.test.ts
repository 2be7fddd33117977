import { expect, test } from "vitest";
import { changeOf, leftOut, measuresOf, type Series } from "./usage-series.ts";

const columns = {
  costUsd: [1, 2],
  tokens: [10, 20],
  runs: [1, 1],
  failedRuns: [0, 0],
  failedCalls: [0, 0],
  slowMs: [900, null],
  cacheShare: [0.5, null],
};
const figures = {
  costUsd: 3,
  inputTokens: 30,
  outputTokens: 3,
  cachedTokens: 15,
  runs: 2,
  unpricedTurns: 0,
  lostUsd: 0,
  likelyUsd: 0,
  details: { isComplete: true, runs: 2, failedRuns: 0, calls: 2, failedCalls: 0, medianMs: 500, slowMs: 900 },
};
const series: Series = { sum: figures, closed: figures, earlier: figures, now: columns, before: columns };

function words(change: Partial<Series>): Readonly<Record<string, string>> {
  const changed = { ...series, ...change };
  return Object.fromEntries(
    measuresOf(false).map((measure) => [measure.id, changeOf(measure, changed).words]),
  );
}

test("a usage panel on the page says that a measure has no calls, and not that it was not recorded earlier", () => {
  const details = { ...figures.details, calls: 0, medianMs: null, slowMs: null };
  const closed = { ...figures, inputTokens: 0, cachedTokens: 0, details };
  expect(words({ closed })).toMatchObject({
    latency: "No call in the times that are over",
    cache: "No input in the times that are over",
    cost: "as much as before",
  });
  expect(words({ earlier: closed })).toMatchObject({ latency: "No call before", cache: "No input before" });
});

test("a usage panel on the page shows a time as not recorded only if an earlier version did not record it", () => {
  const before = { ...columns, failedRuns: [null, 0], slowMs: [null, 900] };
  const earlier = { ...figures, details: { ...figures.details, isComplete: false } };
  expect(words({ before, earlier })).toMatchObject({
    failures: "Not recorded before",
    latency: "Not recorded before",
    cost: "as much as before",
    tokens: "as much as before",
  });
  expect(words({ earlier: { ...figures, runs: 0, inputTokens: 0, costUsd: 0 } })["cost"]).toBe(
    "No usage before to compare with",
  );
});

test("a usage panel on the page says which time its comparison with the days before leaves out", () => {
  expect([leftOut("2026-11-16"), leftOut("2026-11-16T13"), leftOut(undefined)]).toEqual([
    "without today",
    "without this hour",
    "",
  ]);
});
