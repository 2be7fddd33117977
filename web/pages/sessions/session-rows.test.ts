import { expect, test } from "vitest";
import { historyOf, interruptedWords } from "./history.ts";
import { entryWords } from "./session-rows.ts";

test("the page counts the entries of a session as the list does, and says how many of them it shows", () => {
  expect(entryWords(16, 6)).toBe("16 entries in 6 lines");
  expect(entryWords(6, 6)).toBe("6 entries");
  expect(entryWords(1, 0)).toBe("1 entry");
});

test("the page shows an interrupted answer without its marker, with a sentence that says why", () => {
  const message = {
    role: "assistant",
    content: [{ type: "text", text: "I look. [interrupted: budget_exhausted]" }],
    providerMetadata: { reeve: { interrupted: "budget_exhausted" } },
  };
  const entry = { type: "message", id: "e1", at: 1, runId: "run_1", message } as never;
  expect(historyOf([entry], [])).toMatchObject([{ text: "I look.", interrupted: "budget_exhausted" }]);
  expect(interruptedWords("budget_exhausted")).toBe("Stopped at its budget. The answer is not complete.");
  expect(interruptedWords("guardrail: pii")).toBe("The guardrail pii stopped the answer.");
});
