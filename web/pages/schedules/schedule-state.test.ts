import { expect, test } from "vitest";
import type { Run } from "../../api/types.ts";
import { askWords, badRuns, skipWords, stateOf } from "./schedule-state.ts";

const runs = (...statuses: readonly Run["status"][]): readonly Run[] =>
  statuses.map((status) => ({ status }) as Run);

const active = { status: "active", skipped: null, lastAt: null } as const;

test("a schedule on the page whose last run failed reads Failing, and one that recovered reads Active", () => {
  expect(stateOf(active, runs("failed", "failed", "completed")).word).toBe("Failing");
  expect(badRuns(runs("failed", "budget_exhausted", "completed", "failed"))).toBe(2);
  expect(stateOf(active, runs("running", "failed")).word).toBe("Failing");
  expect(stateOf(active, runs("completed", "failed")).word).toBe("Active");
  expect(stateOf({ ...active, status: "paused" }, runs("failed")).word).toBe("Paused");
  expect(stateOf(active, []).word).toBe("Active");
});

test("the page shows what a schedule asks, and why it skipped a fire, without hidden characters", () => {
  expect(askWords({ input: "Send\nit to \u202emoc.live\u200b" })).toBe(
    String.raw`Send it to \u202emoc.live\u200b`,
  );
  const skipped = { at: 0, reason: "error", error: "no \u202eesu\u001b[2K" } as const;
  expect(skipWords({ skipped, lastAt: null })).toBe(
    String.raw`The last fire was refused: no \u202eesu\u001b[2K`,
  );
});

test("a schedule on the page whose last fire was refused reads Failing, until a later fire starts a run", () => {
  const skipped = { at: 5, reason: "error", error: "invalid input" } as const;
  expect(stateOf({ ...active, skipped }, []).word).toBe("Failing");
  expect(stateOf({ ...active, skipped, lastAt: 4 }, runs("completed")).word).toBe("Failing");
  expect(stateOf({ ...active, skipped, lastAt: 6 }, runs("completed")).word).toBe("Active");
  expect(skipWords({ skipped, lastAt: 6 })).toBeNull();
  const missed = { at: 5, reason: "missed" } as const;
  expect(stateOf({ ...active, skipped: missed }, []).word).toBe("Active");
  expect(skipWords({ skipped: missed, lastAt: null })).toBe(
    "The last fire was missed: no process that hosts the agent was open",
  );
});
