import { expect, test } from "vitest";
import { allowanceWords } from "./allowance-words.ts";

const lead = { name: "lead", maxCostUsd: 0.21 };

test("a new run says before its start that the agent's own allowance is lower than the typed one", () => {
  expect(allowanceWords(lead, 2)).toEqual({
    text: "lead may spend $0.21 per run, so this run stops at $0.21. A top-up raises it later.",
    isLower: true,
  });
  expect(allowanceWords(lead, 0.1)).toBeNull();
  expect(allowanceWords(lead, 0.21)).toBeNull();
});

test("a new run without an amount names the agent's own allowance", () => {
  expect(allowanceWords(lead, null)?.text).toBe("Without an amount: $0.21, the allowance of lead.");
  expect(allowanceWords({ name: "scout", maxCostUsd: null }, null)).toBeNull();
});
