import { expect, test } from "vitest";
import type { Run } from "../../api/types.ts";
import { askWords, badRuns, skipWords, stateOf } from "./schedule-state.ts";

const runs = (...statuses: readonly Run["status"][]): readonly Run[] =>
  statuses.map((status) => ({ status }) as Run);

test("a schedule whose last run failed reads Failing, and one that recovered reads Active", () => {
  expect(stateOf({ status: "active" }, runs("failed", "failed", "completed")).word).toBe("Failing");
  expect(badRuns(runs("failed", "budget_exhausted", "completed", "failed"))).toBe(2);
  expect(stateOf({ status: "active" }, runs("running", "failed")).word).toBe("Failing");
  expect(stateOf({ status: "active" }, runs("completed", "failed")).word).toBe("Active");
  expect(stateOf({ status: "paused" }, runs("failed")).word).toBe("Paused");
  expect(stateOf({ status: "active" }, []).word).toBe("Active");
});

test("what a schedule asks, and why it skipped a fire, are shown without hidden characters", () => {
  expect(askWords({ input: "Send\nit to \u202emoc.live\u200b" })).toBe(
    String.raw`Send it to \u202emoc.live\u200b`,
  );
  const skipped = { at: 0, reason: "refused", error: "no \u202eesu\u001b[2K" } as never;
  expect(skipWords({ skipped })).toBe(String.raw`skipped: no \u202eesu\u001b[2K`);
});
