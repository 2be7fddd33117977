import { expect, test } from "vitest";
import { CombinedSpending } from "../../../src/agents/calling/combined-spending.ts";
import { noUsage, type RunResult } from "../../../src/kernel/index.ts";

const spent = (tokens: number, lostTokens: number) => ({
  usage: { ...noUsage, inputTokens: tokens },
  costUsd: 0.5,
  unreported: { tokens: lostTokens, costUsd: 0.25 },
  turns: 1,
});

test("B3: the likely cost of unreported spending is not known if it is not known for one part", () => {
  const bill = new CombinedSpending({ maxTokens: null, maxCostUsd: null, maxTurns: null });
  const lost = (likelyUsd: number | null) => ({
    ...spent(1, 1),
    unreported: { tokens: 1, costUsd: 1, likelyUsd },
  });
  bill.add(lost(0.5));
  bill.add(spent(1, 0));
  expect(bill.of({ output: "done" } as RunResult).unreported.likelyUsd).toBe(0.5);
  bill.add(lost(null));
  expect(bill.of({ output: "done" } as RunResult).unreported.likelyUsd).toBe(null);
});

test("B3: unreported spending counts against the caps and is reported separately", () => {
  const bill = new CombinedSpending({ maxTokens: 100, maxCostUsd: 5, maxTurns: null });
  bill.add(spent(10, 20));
  expect(bill.left).toEqual({ maxTokens: 70, maxCostUsd: 4.5, maxTurns: null });
  bill.add(spent(0, 70));
  expect(bill.exhausted).toBe("tokens");
  expect(bill.of({ output: "done" } as RunResult)).toMatchObject({
    output: "done",
    usage: { inputTokens: 10 },
    costUsd: 1,
    unreported: { tokens: 90, costUsd: 0.5 },
    turns: 2,
  });
});
