import { expect, test } from "vitest";
import {
  formatTaskId,
  openHeadcount,
  Priority,
  spawnBudget,
  stepHeadcount,
} from "../../../src/kernel/index.ts";

test("H1, H5: a resumed task that finds no free seat is paused until a seat frees", () => {
  const [root, first, again] = [formatTaskId(0), formatTaskId(1), formatTaskId(2)];
  const { NORMAL } = Priority;
  const acquire = { type: "acquire", parentId: root, priority: NORMAL } as const;
  const empty = openHeadcount(spawnBudget({ maxAgents: 2 }), root, NORMAL);
  const { state: full } = stepHeadcount(empty, { ...acquire, taskId: first });
  expect(stepHeadcount(full, { ...acquire, taskId: again }).outcome).toMatchObject({ kind: "refused" });
  const { state, outcome } = stepHeadcount(full, { ...acquire, taskId: again, waits: "paused" });
  expect(outcome).toEqual({ kind: "done", changes: [{ taskId: again, change: "paused" }] });
  expect(stepHeadcount(state, { type: "release", taskId: first }).outcome).toMatchObject({
    changes: [{ taskId: again, change: "recalled" }],
  });
});
