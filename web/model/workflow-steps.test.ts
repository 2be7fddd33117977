import { expect, test } from "vitest";
import type { Event } from "../../src/kernel/index.ts";
import { promiseIdOf, stepsOf } from "./workflow-steps.ts";

function events(...drafts: readonly (readonly [type: string, data: object])[]): readonly Event[] {
  return drafts.map(([type, data], seq) => ({ seq, at: seq * 1_000, taskId: "t0", type, data }) as Event);
}

const failed = { name: "charge", durationMs: 5, status: "error" };
const failure = { code: "internal", message: "closed" };

test("stepsOf() of a workflow joins the attempts of a step, and leaves out the wait between them", () => {
  const { rows, waits } = stepsOf(
    events(
      ["step_end", failed],
      ["step_retry", { name: "charge", attempt: 1, delayMs: 1_000, failure }],
      ["task_suspend", { waitsFor: ["sleep"], until: 2_000 }],
      ["task_wake", { by: "time" }],
      ["step_end", { name: "charge", durationMs: 7 }],
      ["step_end", { name: "charge", durationMs: 8 }],
      ["task_suspend", { waitsFor: ["signal paid", "promise promise.0"], until: 9_000 }],
    ),
    Infinity,
  );
  expect(rows.map((row) => (row.kind === "step" ? [row.state, row.attempts.length] : row.kind))).toEqual([
    ["done", 2],
    ["done", 1],
  ]);
  expect(waits).toEqual({
    since: 6_000,
    until: 9_000,
    signals: ["paid"],
    updates: [],
    promises: ["promise.0"],
  });
});

test("stepsOf() of a workflow shows a final failure, ended waits and what is undone, up to the playhead", () => {
  const all = events(
    ["task_suspend", { waitsFor: ["signal paid"], until: null }],
    ["task_signal", { name: "paid", by: "ada" }],
    ["task_wake", { by: "signal paid" }],
    ["step_end", failed],
    ["compensation_start", { names: ["refund"], status: "failed", failure }],
    ["step_end", { name: "refund", durationMs: 1 }],
  );
  const { rows } = stepsOf(all, Infinity);
  expect(rows.map((row) => (row.kind === "step" ? [row.name, row.state, row.isUndo] : row.kind))).toEqual([
    "note",
    "wait",
    ["charge", "failed", false],
    "undo",
    ["refund", "done", true],
  ]);
  expect(stepsOf(all, 1).waits?.signals).toEqual(["paid"]);
});

test("promiseIdOf() returns the same id as ctx.promise()", () => {
  expect(promiseIdOf("run_order-7", "promise.0")).toBe("prm_WyJydW5fb3JkZXItNyIsInQwIiwicHJvbWlzZS4wIl0");
});
