import { expect, test } from "vitest";
import {
  formatTaskId,
  openHeadcount,
  Priority,
  spawnBudget,
  stepHeadcount,
  type HeadcountCommand,
  type TaskId,
} from "../../../src/kernel/index.ts";

const [root, a, b, a1, b1, urgent] = Array.from({ length: 6 }, (_, index) => formatTaskId(index)) as [
  TaskId,
  TaskId,
  TaskId,
  TaskId,
  TaskId,
  TaskId,
];
const { NORMAL, LOW, HIGH } = Priority;
const hire = (taskId: TaskId, parentId: TaskId, priority: Priority): HeadcountCommand => ({
  type: "acquire",
  taskId,
  parentId,
  priority,
  waits: "pending",
});

test("H5: a freed seat goes to no task that would only wait in it for its children while all seated tasks wait", () => {
  const commands: readonly HeadcountCommand[] = [
    hire(a, root, NORMAL),
    hire(b, root, NORMAL),
    { type: "reprioritize", taskId: b, priority: HIGH },
    hire(a1, a, LOW), // waits: b may leave
    { type: "suspend", taskId: a },
    hire(urgent, root, HIGH), // takes the seat of a
    hire(b1, b, LOW), // waits: the urgent one may leave
    { type: "release", taskId: urgent },
  ];
  let state = openHeadcount(spawnBudget({ maxAgents: 3 }), root, NORMAL);
  for (const command of commands) state = stepHeadcount(state, command).state;
  expect(state.taken).toBe(3);
  // `a` has a higher priority than the waiting children, but in the last seat it would wait for its child, which has
  // none.
  expect(state.tasks[a]?.status).toBe("paused");
  expect(state.tasks[a1]?.status).toBe("seated");
});

test("H2, H4: a new task that may wait for a seat is pending until a seat frees, and then gets the seat", () => {
  const full = stepHeadcount(
    openHeadcount(spawnBudget({ maxAgents: 2 }), root, NORMAL),
    hire(a, root, NORMAL),
  );
  const { state, outcome } = stepHeadcount(full.state, hire(b, root, NORMAL));
  expect(outcome).toEqual({ kind: "pending", victim: null, changes: [] });
  expect(stepHeadcount(state, { type: "release", taskId: a }).outcome).toEqual({
    kind: "done",
    changes: [{ taskId: b, change: "granted" }],
  });
  // A child of `a` is refused: `a` would keep its seat while it waits for the child, so no seat could free.
  expect(stepHeadcount(full.state, hire(a1, a, NORMAL)).outcome).toMatchObject({
    kind: "refused",
    reason: "nobody_leaves",
  });
});
