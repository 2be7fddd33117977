import { expect, test } from "vitest";
import { budgetProblems, exactMoney, requestPoints } from "./gateway-kills.ts";

test("SQLite, B1, B3: a program with the clients of OpenAI and Anthropic whose process is killed around its writes is billed at most its cap, and spends at least what is billed", async () => {
  expect(await budgetProblems(2)).toEqual([]);
});

test("SQLite, B7: a program under caps per agent and per month whose process is killed around its writes is billed at most the tightest cap, and spends at least what is billed", async () => {
  expect(await budgetProblems(1, { isCapped: true })).toEqual([]);
});

test("SQLite, B1, B3: a request whose process is killed at any point of its life is paid for at most once, and is never lost", async () => {
  expect(await requestPoints()).toEqual(exactMoney);
});
