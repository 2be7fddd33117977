import { expect, test } from "vitest";
import { dayRange, filterWord, scoreRange } from "../../../src/surfaces/view/run-words.ts";

test("the days of a run filter are those of the process, and dates with Z are UTC days and hours", () => {
  const day = { from: new Date(2026, 2, 1).getTime(), to: new Date(2026, 2, 2).getTime() };
  expect(dayRange("2026-03-01")).toEqual(day);
  expect(dayRange("2026-03-01Z")).toEqual({ from: Date.UTC(2026, 2, 1), to: Date.UTC(2026, 2, 2) });
  expect(dayRange("2026-03-01..2026-03-31Z")).toEqual({
    from: Date.UTC(2026, 2, 1),
    to: Date.UTC(2026, 3, 1),
  });
  expect(dayRange("2026-03-01T13Z")).toEqual({
    from: Date.UTC(2026, 2, 1, 13),
    to: Date.UTC(2026, 2, 1, 14),
  });
  for (const wrong of ["2026-13-01Z", "2026-03-01T25Z", "2026-03-31..2026-03-01Z", "7dZ"])
    expect(dayRange(wrong)).toBeNull();
});

test("a word in the search for runs is a filter, a wrong value of a filter, or a word to search for", () => {
  expect(filterWord("cost>1.5")).toEqual({ name: "above", value: "1.5" });
  expect(filterWord("score.thumbs<0.5")).toEqual({ name: "score", value: "thumbs<0.5" });
  expect([filterWord("score."), filterWord("score.thumbs<x")]).toEqual(["problem", "problem"]);
  expect(["thumbs<0.5", "thumbs>0", "thumbs"].map((text) => scoreRange(text))).toEqual([
    { name: "thumbs", below: 0.5 },
    { name: "thumbs", above: 0 },
    { name: "thumbs" },
  ]);
  expect(filterWord("order=8841")).toEqual({ name: "meta", value: "order=8841" });
  expect(filterWord("started=2026-03-01T13Z")).toEqual({ name: "started", value: "2026-03-01T13Z" });
  expect([filterWord("status=gone"), filterWord("started=soon"), filterWord("refund")]).toEqual([
    "problem",
    "problem",
    null,
  ]);
});
