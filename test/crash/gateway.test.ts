import { expect, test } from "vitest";
import { budgetProblems, exactMoney, requestPoints } from "./gateway-kills.ts";

test("SQLite, B1, B3: a gateway program whose process is killed around its writes is billed at most its cap", async () => {
  expect(await budgetProblems(2)).toEqual([]);
});

test("SQLite, B7: a gateway program under several caps whose process is killed is billed at most the tightest cap", async () => {
  expect(await budgetProblems(1, { isCapped: true })).toEqual([]);
});

test("SQLite, B1, B3: a gateway request whose process is killed at any point is paid at most once and is never lost", async () => {
  expect(await requestPoints()).toEqual(exactMoney);
});
