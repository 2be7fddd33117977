import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  BudgetExhaustedError,
  formatTaskId,
  type HeadcountCommand,
  type HeadcountOutcome,
  openHeadcount,
  Priority,
  seatHolders,
  type SpawnBudget,
  spawnBudget,
  stepHeadcount,
  type TaskId,
} from "../../../src/kernel/index.ts";
import { keeps, type OpenSeats, promiseNames, type SeatKeeper, type SeatRequest } from "./seat-promises.ts";
import { SeedSpawnTracker } from "./seed-spawn-tracker.ts";

const { LOW, NORMAL, HIGH } = Priority;
const root = formatTaskId(0);
const hundred = Array.from({ length: 100 }, (_, index) => index + 2);

describe("the headcount", () => {
  test.each(promiseNames)("the headcount keeps the rule of seats %s", (promise) => {
    const { failed, counterexample } = fc.check(keeps(promise, headcountSeats), { numRuns: 2000 });
    expect({ failed, counterexample }).toEqual({ failed: false, counterexample: null });
  });

  test("H1: of 100 new HIGH tasks above one LOW task, the headcount promises exactly one a seat (R1)", () => {
    const run = setup(headcountSeats, { maxAgents: 2 });
    run.acquire(1, LOW);
    const replies = hundred.map((ordinal) => run.acquire(ordinal, HIGH));
    expect(replies.filter((reply) => reply !== "refused")).toEqual(["pending"]);
    expect(run.working()).toEqual(["t0", "t1"]);
  });

  test("H2: ending a paused task frees no seat (R2)", () => {
    const run = preempted(headcountSeats);
    run.release(1);
    expect(run.acquire(3, NORMAL)).toBe("refused");
    expect(run.working()).toEqual(["t0", "t2"]);
  });

  test("H4: a task that is spawned twice takes one seat and returns one when it ends (R3)", () => {
    const run = setup(headcountSeats, { maxAgents: 3 });
    expect([run.acquire(1, NORMAL), run.acquire(1, NORMAL)]).toEqual(["granted", "refused"]);
    run.release(1);
    expect([run.acquire(2, NORMAL), run.acquire(3, NORMAL)]).toEqual(["granted", "granted"]);
  });

  test("H3: with preemption off a new HIGH task is refused (R4)", () => {
    const run = setup(headcountSeats, { maxAgents: 2, allowPreempt: false });
    run.acquire(1, LOW);
    expect(run.acquire(2, HIGH)).toBe("refused");
  });

  test("H8: a promoted paused task stays paused until a seat frees (R9)", () => {
    const run = preempted(headcountSeats);
    run.reprioritize(1, NORMAL);
    expect(run.working()).toEqual(["t0", "t2"]);
    run.release(2);
    expect(run.working()).toEqual(["t0", "t1"]);
  });
});

describe.each([
  ["whose victims finish their calls", seedSeats({ stopsAtOnce: false })],
  ["whose victims stop at once", seedSeats({ stopsAtOnce: true })],
] as const)("the first design's tracker, %s,", (_reading, seats) => {
  test.each(promiseNames)("the first design's tracker breaks %s", (promise) => {
    expect(fc.check(keeps(promise, seats), { numRuns: 2000 }).failed).toBe(true);
  });

  test("R1: the first design's tracker grants 100 new HIGH tasks the seat of one LOW task", () => {
    const run = setup(seats, { maxAgents: 2 });
    run.acquire(1, LOW);
    expect(hundred.map((ordinal) => run.acquire(ordinal, HIGH))).toEqual(hundred.map(() => "granted"));
    expect(run.working().length).toBeGreaterThan(100);
  });

  test("R2: the first design's tracker frees a victim's seat a second time when the victim ends", () => {
    const run = preempted(seats);
    run.release(1);
    expect(run.acquire(3, NORMAL)).toBe("granted");
    expect(run.working()).toEqual(["t0", "t2", "t3"]);
  });

  test("R3: the first design's tracker loses a seat when a task is spawned twice", () => {
    const run = setup(seats, { maxAgents: 3 });
    expect([run.acquire(1, NORMAL), run.acquire(1, NORMAL)]).toEqual(["granted", "granted"]);
    run.release(1);
    expect([run.acquire(2, NORMAL), run.acquire(3, NORMAL)]).toEqual(["granted", "refused"]);
    expect(run.working()).toEqual(["t0", "t2"]);
  });

  test("R4: the first design's tracker preempts although preemption is off", () => {
    const run = setup(seats, { maxAgents: 2, allowPreempt: false });
    run.acquire(1, LOW);
    expect(run.acquire(2, HIGH)).toBe("granted");
    run.settle(1);
    expect(run.working()).toEqual(["t0", "t2"]);
  });

  test("R9: the first design's tracker lets a promoted victim run although its seat is taken", () => {
    const run = preempted(seats);
    expect(run.working()).toEqual(["t0", "t2"]);
    run.reprioritize(1, NORMAL);
    expect(run.working()).toEqual(["t0", "t1", "t2"]);
  });
});

function setup(open: OpenSeats, budget: Partial<SpawnBudget>) {
  const keeper = open(spawnBudget(budget));
  return {
    acquire: (ordinal: number, priority: Priority) =>
      keeper.acquire({ taskId: formatTaskId(ordinal), parentId: root, priority }),
    release: (ordinal: number) => keeper.release(formatTaskId(ordinal)),
    settle: (ordinal: number) => keeper.settle(formatTaskId(ordinal)),
    reprioritize: (ordinal: number, priority: Priority) =>
      keeper.reprioritize(formatTaskId(ordinal), priority),
    working: () => keeper.working(),
  };
}

/** Opens a run with two seats in which t1 (LOW) is paused and t2 has its seat. */
function preempted(open: OpenSeats) {
  const run = setup(open, { maxAgents: 2 });
  run.acquire(1, LOW);
  run.acquire(2, HIGH);
  run.settle(1);
  return run;
}

function headcountSeats(budget: SpawnBudget): SeatKeeper {
  let state = openHeadcount(budget, root, NORMAL);
  const step = (command: HeadcountCommand): HeadcountOutcome => {
    const next = stepHeadcount(state, command);
    state = next.state;
    return next.outcome;
  };
  return {
    acquire: (request: SeatRequest) => {
      const { kind } = step({ type: "acquire", ...request });
      return kind === "granted" || kind === "pending" ? kind : "refused";
    },
    release: (taskId) => void step({ type: "release", taskId }),
    settle: (taskId) => void step({ type: "settle", taskId }),
    reprioritize: (taskId, priority) => void step({ type: "reprioritize", taskId, priority }),
    working: () => seatHolders(state).map((holder) => holder.taskId),
  };
}

/**
 * Wraps the seat tracker of the first design. With `stopsAtOnce`, a victim has no call in flight, which is the best case
 * for that tracker.
 */
function seedSeats({ stopsAtOnce }: { readonly stopsAtOnce: boolean }): OpenSeats {
  return (budget) => {
    const tracker = new SeedSpawnTracker(budget);
    let settled: readonly TaskId[] = [];
    const stopped = (): readonly TaskId[] =>
      tracker.active().filter((id) => tracker.isPaused(id) && (stopsAtOnce || settled.includes(id)));
    return {
      acquire: ({ taskId, priority }) => granted(() => tracker.acquire(taskId, priority)),
      release: (taskId) => {
        tracker.release(taskId);
        settled = stopped();
      },
      settle: (taskId) => {
        settled = [...stopped(), taskId].filter((id) => tracker.isPaused(id));
      },
      reprioritize: (taskId, priority) => {
        tracker.reprioritize(taskId, priority);
        settled = stopped();
      },
      working: () => [root, ...tracker.active().filter((id) => !stopped().includes(id))],
    };
  };
}

function granted(acquire: () => void): "granted" | "refused" {
  try {
    acquire();
    return "granted";
  } catch (error) {
    if (!(error instanceof BudgetExhaustedError)) throw error;
    return "refused";
  }
}
