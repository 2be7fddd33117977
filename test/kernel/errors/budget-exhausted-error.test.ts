import { expect, test } from "vitest";
import { BudgetExhaustedError, reviveFault, type Failure } from "../../../src/kernel/index.ts";

test.each([
  [
    { dimension: "costUsd", limit: 0.1, used: 0.1226 },
    { reserved: 0.1226, remaining: 0.1, spent: 0, unreported: 0 },
    "reservation of 0.1226 USD does not fit into the remaining 0.1 USD (spent 0)",
  ],
  [
    { dimension: "costUsd", limit: 1, used: 1.1 },
    { reserved: 0.1, remaining: 0.00000001, spent: 0.99999999, unreported: 0.5 },
    "reservation of 0.1 USD does not fit into the remaining 0.00000001 USD (spent 0.99999999, 0.5 of it unreported)",
  ],
  [
    { dimension: "turns", limit: 2, used: 3 },
    { reserved: 1, remaining: 0, spent: 2, unreported: 0 },
    "reservation of 1 turn does not fit into the remaining 0 turns (spent 2)",
  ],
] as const)(
  "B5: BudgetExhaustedError names reserved, remaining, spent and unreported of a refused reservation, also after it was stored: %j",
  (exhaustion, refused, message) => {
    const error = new BudgetExhaustedError({ ...exhaustion, refused, details: { taskId: "t3" } });
    const stored = JSON.parse(JSON.stringify(error)) as Failure;
    for (const each of [error, reviveFault(stored)])
      expect(each).toMatchObject({ ...exhaustion, refused, message, details: { taskId: "t3", refused } });
  },
);

test("reviveFault() keeps the details of a refused reservation that it cannot read", () => {
  const details = { dimension: "turns", limit: 2, used: 3, refused: { reserved: "1" } };
  const revived = reviveFault({ code: "budget_exhausted", message: "too much", details });
  expect(revived).toMatchObject({ code: "internal", message: "too much" });
  expect(JSON.stringify(revived.details)).toContain(`"reserved":"1"`);
});
