import { expect, test } from "vitest";
import { budgetWords } from "./budget-words.ts";

const lead = { name: "lead", maxCostUsd: 0.21 };

test("the page's form for a new run says before the start if the agent's own budget is lower than the typed one", () => {
  expect(budgetWords(lead, 2)).toEqual({
    text: "lead may spend $0.21 per run, so this run stops at $0.21. A top-up raises it later.",
    isLower: true,
  });
  expect(budgetWords(lead, 0.1)).toBeNull();
  expect(budgetWords(lead, 0.21)).toBeNull();
});

test("the page's form for a new run without an amount names the agent's own budget", () => {
  expect(budgetWords(lead, null)?.text).toBe("Without an amount: $0.21, the budget of lead.");
  expect(budgetWords({ name: "scout", maxCostUsd: null }, null)).toBeNull();
});
