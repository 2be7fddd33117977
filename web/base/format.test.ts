import { expect, test } from "vitest";
import { columnUsd, downTime, shortId, usdApart } from "./format.ts";

test("a list of the page shows an id as it is, or cuts it with an ellipsis", () => {
  expect(shortId("run_release-0-9")).toBe("run_release-0-9");
  expect(shortId("run_394d481d-8c34-4c63-9c8c-26acb101eec5")).toBe("run_394d481d…");
  expect(shortId("worker-394d481d-8c34-4c63-9c8c-26acb101eec5")).toBe("worker-394d481d…");
  expect(shortId("worker-b")).toBe("worker-b");
  expect(shortId("run_a-name-that-is-too-long-for-a-list")).toBe("run_a-name-that-is-too-…");
});

test("two different amounts on the page have as many decimals as are needed to tell them apart", () => {
  expect(usdApart(0.0048, 0.00453)).toEqual(["$0.0048", "$0.0045"]);
  expect(usdApart(0.035145, 0.022221)).toEqual(["$0.035", "$0.022"]);
  expect(usdApart(0.05, 0.05)).toEqual(["$0.050", "$0.050"]);
});

test("amounts in a column of the page have three decimals, and a smaller amount is not shown as zero", () => {
  expect([0, 0.00047, 0.0005, 1.2345, null].map(columnUsd)).toEqual([
    "$0.000",
    "<$0.001",
    "$0.001",
    "$1.234",
    "unpriced",
  ]);
});

test("the page shows the time without an owner with tenths of a second below ten seconds", () => {
  expect([200, 1_640, 43_500].map(downTime)).toEqual(["0.2 s", "1.6 s", "43 s"]);
});
