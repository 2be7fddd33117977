import fc from "fast-check";
import { expect, test } from "vitest";
import {
  formatTaskId,
  openHeadcount,
  Priority,
  spawnBudget,
  stepHeadcount,
  type Headcount,
  type HeadcountCommand,
} from "../../../src/kernel/index.ts";
import { propertyRuns } from "../../effort.ts";
import { allCommands, commandOf, seatRuns } from "./seat-promises.ts";

const root = formatTaskId(0);
const one = formatTaskId(1);
const two = formatTaskId(2);

/** A headcount after these commands, and the status of each task. */
function after(
  maxAgents: number,
  ...commands: readonly HeadcountCommand[]
): Readonly<Record<string, string>> {
  let state = openHeadcount(spawnBudget({ maxAgents }), root, Priority.NORMAL);
  for (const command of commands) ({ state } = stepHeadcount(state, command));
  return Object.fromEntries(Object.values(state.tasks).map(({ taskId, status }) => [taskId, status]));
}

const hire = (taskId: typeof root, parentId = root): HeadcountCommand => ({
  type: "acquire",
  taskId,
  parentId,
  priority: Priority.NORMAL,
  waits: "pending",
});
const hold = (taskId: typeof root): HeadcountCommand => ({ type: "hold", taskId, heldFor: root });

test("H1, H2: a task that is held pauses once its calls have settled, and its seat goes to the next task", () => {
  expect(after(2, hire(one), hold(one))).toEqual({ t0: "seated", t1: "pausing" });
  const settled = [hire(one), hire(two), hold(one), { type: "settle", taskId: one }] as const;
  expect(after(2, ...settled)).toEqual({ t0: "seated", t1: "paused", t2: "seated" });
  expect(after(2, hire(one), { type: "suspend", taskId: one }, hold(one))).toEqual({
    t0: "seated",
    t1: "paused",
  });
});

test("H5: a task that is held is not recalled when a seat frees, and queues for a seat after the hold ends", () => {
  const held = [hire(one), hold(one), { type: "settle", taskId: one }] as const;
  expect(after(3, ...held, { type: "crash" })).toEqual({ t0: "seated", t1: "paused" });
  const full = [...held, hire(two)] as const;
  expect(after(2, ...full, { type: "unhold", taskId: one })).toMatchObject({ t1: "paused" });
  const freed = [...full, { type: "unhold", taskId: one }, { type: "release", taskId: two }] as const;
  expect(after(2, ...freed)).toEqual({ t0: "seated", t1: "seated" });
  expect(after(2, ...full, { type: "release", taskId: two })).toEqual({ t0: "seated", t1: "paused" });
});

test("H5: a held task that has not paused yet keeps its seat when its hold ends", () => {
  expect(after(2, hire(one), hold(one), { type: "unhold", taskId: one })).toEqual({
    t0: "seated",
    t1: "seated",
  });
});

test("H5: a victim keeps its seat if the task to which it would yield is held, and that task is not recalled", () => {
  const waits = { ...hire(two), waits: "paused" } as const;
  const lowered = { type: "reprioritize", taskId: one, priority: Priority.LOW } as const;
  const promised = [hire(one), waits, lowered] as const;
  expect(after(2, ...promised)).toEqual({ t0: "seated", t1: "pausing", t2: "paused" });
  expect(after(2, ...promised, hold(two))).toEqual({ t0: "seated", t1: "seated", t2: "paused" });
  const left = [...promised, hold(two), { type: "release", taskId: one }] as const;
  expect(after(2, ...left)).toEqual({ t0: "seated", t2: "paused" });
  expect(after(2, ...left, { type: "unhold", taskId: two })).toEqual({ t0: "seated", t2: "seated" });
});

test("H5: a root task is recalled although a task below it is held", () => {
  const both = [hire(one), hold(one), { type: "settle", taskId: one }, hold(root)] as const;
  const commands = [...both, { type: "settle", taskId: root }, { type: "unhold", taskId: root }] as const;
  expect(after(2, ...commands)).toEqual({ t0: "seated", t1: "paused" });
});

test("H1, H5: after every random command no seat is taken twice, and no task that is held is recalled", () => {
  const commands = { ...allCommands, hold: 4, unhold: 3 };
  fc.assert(
    fc.property(seatRuns(commands), ({ budget, wishes }) => {
      let state: Headcount = openHeadcount(budget, root, Priority.NORMAL);
      for (const wish of wishes) {
        const command = commandOf(wish, state);
        const { state: next, outcome } = stepHeadcount(state, command);
        const tasks = Object.values(next.tasks);
        const seated = tasks.filter(({ status }) => status === "seated" || status === "pausing");
        expect([next.taken, next.waiting]).toEqual([seated.length, tasks.length - seated.length]);
        expect(next.taken).toBeLessThanOrEqual(budget.maxAgents);
        const recalled = "changes" in outcome ? outcome.changes : [];
        const isHeld = (taskId: typeof root): boolean => next.tasks[taskId]?.heldFor !== undefined;
        expect(recalled.filter(({ taskId, change }) => change === "recalled" && isHeld(taskId))).toEqual([]);
        state = next;
      }
    }),
    { numRuns: propertyRuns(4_000) },
  );
});
