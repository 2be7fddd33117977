import { expect, it } from "vitest";
import { offeredAmount } from "../../../src/kernel/index.ts";
import { addedWords, amountWords, lackOf, type Lack } from "../../../src/surfaces/view/top-up-offer.ts";

const lack = (name: Lack["name"], limit: number | null, short = 0): Lack => ({
  taskId: "t0",
  name,
  limit,
  short,
});

it.each([
  [lack("maxCostUsd", 0.05), "$0.03"],
  [lack("maxCostUsd", 0.005), "$0.003"],
  [lack("maxCostUsd", 0.05, 0.12), "$0.20"],
  [lack("maxCostUsd", 40), "$20.00"],
  [lack("maxCostUsd", 0), "$0.01"],
  [lack("maxTurns", 1), "1 turn"],
  [lack("maxTurns", 5), "3 turns"],
  [lack("maxTokens", 50_000), "30,000 tokens"],
  [lack("maxTokens", 5, 420), "500 tokens"],
  [lack("deadlineMs", 120_000), "1 min"],
  [lack("deadlineMs", 3_600_000), "30 min"],
  [lack("deadlineMs", 259_200_000), "36 h"],
  [lack("deadlineMs", null), "1 min"],
] as const)(
  "the top-up that is offered for %o is %s: about half of the limit, and enough for the refused call",
  (of, words) => {
    expect(amountWords(of.name, offeredAmount(of, Infinity))).toBe(words);
  },
);

it("the top-up that is offered is at most what the person may add", () => {
  expect(offeredAmount(lack("maxTurns", 100), 2)).toBe(2);
  expect(offeredAmount(lack("maxCostUsd", 0), 0)).toBe(0);
});

it.each([
  [
    "a cap per day",
    "budget_exhausted",
    { dimension: "costUsd", limit: 1, used: 2, cap: { name: "perDayUsd" } },
  ],
  ["seats", "budget_exhausted", { dimension: "agents", limit: 2, used: 3 }],
  ["a limit of the loop", "max_turns", {}],
  ["an error", "failed", { dimension: "turns" }],
])("a run that stopped at %s is offered no top-up", (_what, status, details) => {
  const failure = { code: "budget_exhausted", message: "", details } as never;
  expect(lackOf({ status, failure, budget: null })).toBeNull();
});

it("a run that stopped long after its deadline is offered the time beyond the deadline, and time to work", () => {
  const stopped = (details: object): Lack | null =>
    lackOf({
      status: "deadline_exceeded",
      failure: { code: "cancelled", message: "deadline exceeded", details } as never,
      budget: { deadlineMs: 120_000 },
    });
  const time = (limit: number, used: number) => stopped({ dimension: "deadlineMs", limit, used });
  expect(time(120_000, 119_500)).toEqual(lack("deadlineMs", 120_000));
  expect(time(120_000, 1_320_000)).toEqual(lack("deadlineMs", 120_000, 1_200_000 + 60_000));
  expect(offeredAmount(time(120_000, 1_320_000) ?? lack("deadlineMs", 0), Infinity)).toBe(1_800_000);
  // An error of an earlier version names no time.
  expect(stopped({ status: "deadline_exceeded" })).toEqual(lack("deadlineMs", 120_000));
});

it("a top-up of several limits is described in words, also of time", () => {
  expect(addedWords({ maxCostUsd: 0.5, deadlineMs: 300_000 })).toBe("$0.50 and 5 min of time");
  expect(addedWords({ maxCostUsd: 0.5, maxTurns: 1, maxTokens: 2_000 })).toBe(
    "$0.50, 1 turn and 2,000 tokens",
  );
  expect(addedWords({})).toBe("");
});

it("the lack of a stopped run names the task whose limit was reached, and what the refused call needed", () => {
  const refused = { reserved: 900, remaining: 100, spent: 0, unreported: 0 };
  const details = { dimension: "tokens", limit: 100, used: 900, taskId: "t3", refused };
  const failure = { code: "budget_exhausted", message: "", details } as never;
  expect(lackOf({ status: "budget_exhausted", failure, budget: null })).toEqual({
    taskId: "t3",
    name: "maxTokens",
    limit: 100,
    short: 800,
  });
});
