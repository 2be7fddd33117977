import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  deepFreeze,
  formatTaskId,
  type Headcount,
  type HeadcountCommand,
  type HeadcountOutcome,
  openHeadcount,
  Priority,
  type SeatStatus,
  type SpawnBudget,
  spawnBudget,
  stepHeadcount,
} from "../../../src/kernel/index.ts";
import { allCommands, commandOf, seatRuns } from "./seat-promises.ts";
import { propertyRuns } from "../../effort.ts";

const { BACKGROUND, LOW, NORMAL, HIGH, CRITICAL } = Priority;

const nothing: HeadcountOutcome = { kind: "done", changes: [] };

describe("headcount: the limit of seats", () => {
  test("H1: with a cap of one seat, only the root task has a seat", () => {
    const run = setup(1);
    expect(run.acquire(1, NORMAL)).toMatchObject({ kind: "refused", reason: "full" });
    expect(run.acquire(1, CRITICAL)).toMatchObject({ kind: "refused", reason: "nobody_below" });
    expect(run.statuses()).toEqual({ t0: "seated" });
  });

  test("H1: a new task of any priority gets a free seat", () => {
    const run = setup(6);
    const kinds = [BACKGROUND, LOW, NORMAL, HIGH, CRITICAL].map(
      (priority, index) => run.acquire(index + 1, priority).kind,
    );
    expect(kinds).toEqual(["granted", "granted", "granted", "granted", "granted"]);
    expect(run.state().taken).toBe(6);
  });

  test("H1: a suspended task keeps its seat", () => {
    const run = full([LOW]);
    run.tell("suspend", 1);
    expect(run.acquire(2, NORMAL)).toMatchObject({ kind: "refused", reason: "full" });
    expect(run.statuses()).toEqual({ t0: "seated", t1: "seated" });
  });

  test("H4: a new NORMAL task is refused when all seats are taken, and the refusal lists the holders", () => {
    const run = full([LOW, LOW]);
    run.acquire(3, HIGH);
    expect(run.acquire(4, NORMAL)).toEqual({
      kind: "refused",
      reason: "full",
      holders: [
        { taskId: "t0", priority: NORMAL, status: "seated" },
        { taskId: "t1", priority: LOW, status: "seated" },
        { taskId: "t2", priority: LOW, status: "pausing" },
      ],
    });
  });

  test("H4: a new task with the id of an existing task is refused, whether that task has a seat or not", () => {
    const run = preempted();
    const before = run.state();
    const replies = [0, 1, 2].map((ordinal) => run.acquire(ordinal, CRITICAL));
    expect(replies).toMatchObject(replies.map(() => ({ kind: "refused", reason: "already_hired" })));
    expect(run.state()).toBe(before);
  });

  test("H4: a task whose parent does not exist is refused", () => {
    const run = setup(3);
    run.acquire(1, NORMAL);
    run.tell("release", 1);
    expect(run.acquire(2, NORMAL, 1)).toMatchObject({ kind: "refused", reason: "unknown_parent" });
  });

  test("H4: ending a task twice frees one seat", () => {
    const run = full([NORMAL, NORMAL]);
    expect(run.tell("release", 1)).toEqual(nothing);
    expect(run.tell("release", 1)).toEqual({ kind: "ignored" });
    expect(run.acquire(3, NORMAL).kind).toBe("granted");
    expect(run.acquire(4, NORMAL).kind).toBe("refused");
  });
});

describe("headcount: how a seat passes to another task", () => {
  test("H2: a new task gets the seat of its victim only after the victim's calls have settled", () => {
    const run = full([LOW]);
    expect(run.acquire(2, HIGH)).toEqual({
      kind: "pending",
      victim: "t1",
      changes: [{ taskId: "t1", change: "pausing" }],
    });
    expect(run.statuses()).toEqual({ t0: "seated", t1: "pausing", t2: "pending" });
    expect(reported(run.tell("settle", 1))).toEqual(["t1 paused", "t2 granted"]);
    expect(run.statuses()).toEqual({ t0: "seated", t1: "paused", t2: "seated" });
  });

  test("H2: a suspended task that becomes a victim is paused at once", () => {
    const run = full([LOW]);
    run.tell("suspend", 1);
    const outcome = run.acquire(2, HIGH);
    expect(outcome.kind).toBe("granted");
    expect(reported(outcome)).toEqual(["t1 paused", "t2 granted"]);
  });

  test("H2: a victim that was suspended and then woke must settle its calls before it is paused", () => {
    const run = full([LOW]);
    run.tell("suspend", 1);
    run.tell("wake", 1);
    expect(run.acquire(2, HIGH).kind).toBe("pending");
  });

  test("H2: a pausing task that suspends counts as settled", () => {
    const run = full([LOW]);
    run.acquire(2, HIGH);
    expect(reported(run.tell("suspend", 1))).toEqual(["t1 paused", "t2 granted"]);
  });

  test("H2: the seat of a victim that ends goes to the task to which it was promised, even if others wait", () => {
    const run = full([LOW, NORMAL]);
    run.acquire(3, HIGH);
    run.tell("settle", 1);
    run.acquire(4, HIGH);
    run.reprioritize(1, CRITICAL);
    expect(reported(run.tell("release", 2))).toEqual(["t4 granted"]);
  });

  test("H2: a victim keeps its seat when the new task ends before it gets the seat", () => {
    const run = full([LOW]);
    run.acquire(2, HIGH);
    expect(reported(run.tell("release", 2))).toEqual(["t1 kept"]);
    expect(run.tell("settle", 1)).toEqual({ kind: "ignored" });
    expect(run.statuses()).toEqual({ t0: "seated", t1: "seated" });
  });

  test("H2: a victim keeps its seat when the new task gets another seat", () => {
    const run = full([LOW, NORMAL]);
    run.acquire(3, HIGH);
    expect(reported(run.tell("release", 2))).toEqual(["t3 granted", "t1 kept"]);
    expect(run.statuses()).toEqual({ t0: "seated", t1: "seated", t3: "seated" });
  });

  test("H2: ending a paused task frees no seat", () => {
    const run = preempted();
    run.tell("release", 1);
    expect(run.state().taken).toBe(2);
    expect(run.acquire(3, NORMAL).kind).toBe("refused");
  });

  test("H2: the children of a task that pauses keep running", () => {
    const run = setup(3);
    run.acquire(1, LOW);
    run.acquire(2, NORMAL, 1);
    run.acquire(3, HIGH);
    run.tell("settle", 1);
    expect(run.statuses()).toEqual({ t0: "seated", t1: "paused", t2: "seated", t3: "seated" });
  });

  test("H2: a paused or pausing task is not chosen as a victim again", () => {
    const run = full([LOW]);
    run.acquire(2, HIGH);
    expect(run.acquire(3, HIGH)).toMatchObject({ kind: "refused", reason: "nobody_below" });
    run.tell("settle", 1);
    expect(run.acquire(3, HIGH)).toMatchObject({ kind: "refused", reason: "nobody_below" });
  });

  test("H2: a crash of the owner settles every pausing task", () => {
    const run = full([LOW, LOW, NORMAL]);
    run.acquire(4, HIGH);
    run.acquire(5, HIGH);
    const outcome = run.step({ type: "crash" });
    expect(reported(outcome)).toEqual(["t1 paused", "t5 granted", "t2 paused", "t4 granted"]);
    expect(run.statuses()).toMatchObject({ t1: "paused", t2: "paused", t3: "seated" });
  });
});

describe("headcount: the choice of a victim", () => {
  test("H3: new HIGH and CRITICAL tasks preempt a task of lower priority", () => {
    expect(full([LOW]).acquire(9, HIGH)).toMatchObject({ kind: "pending", victim: "t1" });
    expect(full([HIGH]).acquire(9, CRITICAL)).toMatchObject({ kind: "pending", victim: "t1" });
  });

  test("H3: a new NORMAL task does not preempt a BACKGROUND task", () => {
    expect(full([BACKGROUND]).acquire(9, NORMAL)).toMatchObject({ kind: "refused", reason: "full" });
  });

  test("H3: a new task does not preempt a task of equal priority", () => {
    expect(full([HIGH]).acquire(9, HIGH)).toMatchObject({ kind: "refused", reason: "nobody_below" });
    expect(full([CRITICAL]).acquire(9, CRITICAL)).toMatchObject({ kind: "refused", reason: "nobody_below" });
  });

  test("H3: no task is preempted if the budget does not allow preemption", () => {
    const run = full([BACKGROUND], { allowPreempt: false });
    expect(run.acquire(9, CRITICAL)).toMatchObject({ kind: "refused", reason: "preemption_off" });
    expect(run.statuses()).toEqual({ t0: "seated", t1: "seated" });
  });

  test("H3: the task with the lowest priority is the victim", () => {
    expect(full([NORMAL, BACKGROUND, LOW]).acquire(9, HIGH)).toMatchObject({ victim: "t2" });
  });

  test("H3: the newest of several tasks with the lowest priority is the victim", () => {
    expect(full([LOW, LOW, LOW, NORMAL]).acquire(9, HIGH)).toMatchObject({ victim: "t3" });
  });

  test("H3: the root is never a victim", () => {
    const run = setup(2, { rootPriority: BACKGROUND });
    run.acquire(1, HIGH);
    expect(run.acquire(2, HIGH)).toMatchObject({ kind: "refused", reason: "nobody_below" });
  });

  test("H3: an ancestor of the new task is never a victim", () => {
    const run = setup(4);
    run.acquire(1, LOW);
    run.acquire(2, LOW, 1);
    run.acquire(3, NORMAL);
    expect(run.acquire(9, HIGH, 2)).toMatchObject({ kind: "pending", victim: "t3" });
    expect(run.acquire(8, HIGH, 2)).toMatchObject({ kind: "refused", reason: "nobody_below" });
  });

  test("H3: when a parent has ended, its children's grandparent still counts as their ancestor", () => {
    const run = setup(4);
    run.acquire(1, LOW);
    run.acquire(2, NORMAL, 1);
    run.acquire(3, NORMAL, 2);
    run.tell("release", 2);
    run.acquire(4, HIGH, 3);
    expect(run.acquire(5, CRITICAL, 3)).toMatchObject({ kind: "pending", victim: "t4" });
    expect(run.acquire(6, CRITICAL, 3)).toMatchObject({ kind: "refused", reason: "nobody_below" });
  });

  test("H3: a task that was recalled cannot be preempted until its next model call has completed", () => {
    const run = preempted();
    expect(reported(run.tell("release", 2))).toEqual(["t1 recalled"]);
    expect(run.acquire(3, HIGH)).toMatchObject({ kind: "refused", reason: "nobody_below" });
    run.tell("progress", 1);
    expect(run.acquire(3, HIGH)).toMatchObject({ kind: "pending", victim: "t1" });
  });

  test("H3: a call that completes while its task is paused does not end the task's protection after its recall", () => {
    const run = preempted();
    run.tell("progress", 1);
    run.tell("release", 2);
    expect(run.acquire(3, CRITICAL)).toMatchObject({ kind: "refused", reason: "nobody_below" });
  });
});

describe("headcount: the queue for a seat", () => {
  test("H5: the paused task with the highest priority is recalled first, and of equal tasks the one that has waited longest", () => {
    const run = full([LOW, NORMAL, LOW, NORMAL]);
    for (const ordinal of [5, 6, 7, 8]) run.acquire(ordinal, HIGH);
    for (const ordinal of [1, 4, 3, 2]) run.tell("settle", ordinal);
    const recalled = [5, 6, 7, 8].flatMap((ordinal) => reported(run.tell("release", ordinal)));
    expect(recalled).toEqual(["t4 recalled", "t2 recalled", "t1 recalled", "t3 recalled"]);
  });

  test("H5: a freed seat goes to a task in the queue before it goes to a new task", () => {
    const run = preempted();
    run.tell("release", 2);
    expect(run.acquire(3, NORMAL)).toMatchObject({ kind: "refused", reason: "full" });
    expect(run.statuses()).toEqual({ t0: "seated", t1: "seated" });
  });

  test("H8: a task whose priority is lowered keeps its seat when no task waits", () => {
    const run = full([HIGH]);
    expect(run.reprioritize(1, BACKGROUND)).toEqual(nothing);
    expect(run.statuses()).toEqual({ t0: "seated", t1: "seated" });
  });

  test("H8: a task whose priority is lowered yields its seat to a waiting task of higher priority", () => {
    const run = preempted();
    expect(reported(run.reprioritize(2, BACKGROUND))).toEqual(["t2 pausing"]);
    expect(reported(run.tell("settle", 2))).toEqual(["t2 paused", "t1 recalled"]);
  });

  test("H8: a suspended task whose priority is lowered yields its seat at once", () => {
    const run = preempted();
    run.tell("suspend", 2);
    expect(reported(run.reprioritize(2, BACKGROUND))).toEqual(["t2 paused", "t1 recalled"]);
  });

  test("H8: a task with a lowered priority yields its seat neither to an equal task nor to one that is promised another seat", () => {
    const equal = preempted();
    expect(equal.reprioritize(2, LOW)).toEqual(nothing);

    const promised = full([LOW, HIGH]);
    promised.acquire(9, HIGH);
    expect(promised.reprioritize(2, BACKGROUND)).toEqual(nothing);
  });

  test("H8: the root, an ancestor of the waiting task and a recalled task keep their seats when their priority is lowered", () => {
    const run = setup(3);
    run.acquire(1, NORMAL);
    run.acquire(2, LOW, 1);
    run.acquire(3, HIGH, 1);
    run.tell("settle", 2);
    expect(run.statuses()).toEqual({ t0: "seated", t1: "seated", t2: "paused", t3: "seated" });
    expect(run.reprioritize(0, BACKGROUND)).toEqual(nothing);
    expect(run.reprioritize(1, BACKGROUND)).toEqual(nothing);

    const recalled = full([NORMAL, NORMAL]);
    recalled.acquire(3, HIGH);
    recalled.acquire(4, HIGH);
    recalled.step({ type: "crash" });
    recalled.tell("release", 3);
    expect(recalled.statuses()).toEqual({ t0: "seated", t1: "seated", t2: "paused", t4: "seated" });
    expect(recalled.reprioritize(1, BACKGROUND)).toEqual(nothing);
  });

  test("H8: a task with a lowered priority keeps its seat when the waiting task is recalled to another seat", () => {
    const run = full([LOW, NORMAL, HIGH]);
    run.acquire(4, HIGH);
    run.tell("settle", 1);
    run.reprioritize(3, BACKGROUND);
    expect(run.statuses()).toMatchObject({ t1: "paused", t3: "pausing" });
    expect(reported(run.tell("release", 2))).toEqual(["t1 recalled", "t3 kept"]);
  });

  test("H8: a paused task whose priority is raised stays paused and is queued by its new priority", () => {
    const run = full([LOW, NORMAL]);
    run.acquire(3, HIGH);
    run.acquire(4, HIGH);
    run.step({ type: "crash" });
    expect(run.reprioritize(1, CRITICAL)).toEqual(nothing);
    expect(reported(run.tell("release", 3))).toEqual(["t1 recalled"]);
  });
});

describe("headcount: commands", () => {
  test("H4: the headcount ignores a command about a task that does not exist", () => {
    const run = preempted();
    const before = run.state();
    for (const type of ["release", "settle", "suspend", "wake", "progress"] as const) {
      expect(run.tell(type, 7)).toEqual({ kind: "ignored" });
    }
    expect(run.reprioritize(7, CRITICAL)).toEqual({ kind: "ignored" });
    expect(run.state()).toBe(before);
  });

  test("H2: the headcount ignores a settle command for a task that is not pausing", () => {
    const run = preempted();
    for (const ordinal of [0, 1, 2]) expect(run.tell("settle", ordinal)).toEqual({ kind: "ignored" });
  });

  test("H6: a headcount command has the same effect on a state that went through JSON, and does not change that state", () => {
    fc.assert(
      fc.property(seatRuns(allCommands), ({ budget, wishes }) => {
        let state = openHeadcount(budget, formatTaskId(0), NORMAL);
        for (const wish of wishes) {
          const command = commandOf(wish, state);
          const written = JSON.stringify(state);
          const next = stepHeadcount(state, command);
          const again = stepHeadcount(JSON.parse(written) as Headcount, command);
          expect(JSON.stringify([state, again])).toBe(`[${written},${JSON.stringify(next)}]`);
          state = next.state;
        }
      }),
      { numRuns: propertyRuns(2_000) },
    );
  });
});

/** Formats the changes of an outcome as lines such as `t1 paused`. */
function reported(outcome: HeadcountOutcome): readonly string[] {
  return "changes" in outcome ? outcome.changes.map(({ taskId, change }) => `${taskId} ${change}`) : [];
}

interface SetupOptions extends Partial<SpawnBudget> {
  readonly rootPriority?: Priority;
}

/** Opens a headcount whose state is frozen before each command. */
function setup(maxAgents: number, { rootPriority = NORMAL, ...budget }: SetupOptions = {}) {
  let state = openHeadcount(spawnBudget({ maxAgents, ...budget }), formatTaskId(0), rootPriority);
  const step = (command: HeadcountCommand): HeadcountOutcome => {
    const next = stepHeadcount(deepFreeze(state), command);
    state = next.state;
    return next.outcome;
  };
  return {
    step,
    state: () => state,
    statuses: (): Record<string, SeatStatus> =>
      Object.fromEntries(Object.values(state.tasks).map(({ taskId, status }) => [taskId, status])),
    acquire: (ordinal: number, priority: Priority, parent = 0) =>
      step({ type: "acquire", taskId: formatTaskId(ordinal), parentId: formatTaskId(parent), priority }),
    tell: (type: "release" | "settle" | "suspend" | "wake" | "progress", ordinal: number) =>
      step({ type, taskId: formatTaskId(ordinal) }),
    reprioritize: (ordinal: number, priority: Priority) =>
      step({ type: "reprioritize", taskId: formatTaskId(ordinal), priority }),
  };
}

/** Opens a headcount without a free seat: the root, then tasks t1, t2, ... with these priorities. */
function full(given: readonly Priority[], options: SetupOptions = {}) {
  const run = setup(given.length + 1, options);
  for (const [index, priority] of given.entries()) run.acquire(index + 1, priority);
  return run;
}

/** Opens a headcount with two seats in which t1 (LOW) is paused and t2 (HIGH) has its seat. */
function preempted() {
  const run = full([LOW]);
  run.acquire(2, HIGH);
  run.tell("settle", 1);
  return run;
}
