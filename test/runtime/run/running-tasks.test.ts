import { expect, test } from "vitest";
import type { TaskId } from "../../../src/kernel/index.ts";
import type { RunState } from "../../../src/runtime/journal/run-state.ts";
import type { RunHeadcount } from "../../../src/runtime/run/run-headcount.ts";
import { RunningTasks } from "../../../src/runtime/run/running-tasks.ts";
import type { TaskRunner } from "../../../src/runtime/task/task-runner.ts";
import { agent, settle, setUp, spawnTask } from "../runtime-setup.ts";

const count = 1_000;

/** Runners that count how often they are asked whether they rest. */
function newRunners(): {
  readonly tasks: RunningTasks;
  readonly runners: Runner[];
  readonly asked: () => number;
} {
  let asked = 0;
  const state = { liveTasks: count } as RunState;
  const tasks = new RunningTasks(state, {} as RunHeadcount);
  const runners = Array.from({ length: count }, (_, index): Runner => {
    const runner = {
      taskId: `t${index}`,
      rests: false,
      drop: () => undefined,
      activity: {
        get isIdle() {
          asked++;
          return runner.rests;
        },
      },
    };
    tasks.add(runner as unknown as TaskRunner);
    return runner;
  });
  return { tasks, runners, asked: () => asked };
}

interface Runner {
  rests: boolean;
}

/** The same order in each run of the test: neither that of creation nor its reverse. */
const scattered = Array.from({ length: count }, (_, index) => (index * 617) % count);

test.for([
  ["in the order of creation", Array.from({ length: count }, (_, index) => index)],
  ["in the reverse order", Array.from({ length: count }, (_, index) => count - 1 - index)],
  ["in any order", scattered],
] as const)(
  "the runtime asks n tasks that come to rest one after the other, %s, O(n) times whether they wait",
  ([, order]) => {
    const { tasks, runners, asked } = newRunners();
    for (const index of order) {
      expect(tasks.isIdle).toBe(false);
      (runners[index] as Runner).rests = true;
    }
    expect(tasks.isIdle).toBe(true);
    expect(asked()).toBeLessThanOrEqual(4 * count);
  },
);

test("a task that is no longer in memory is not asked whether it waits, and the tasks that remain decide", () => {
  const { tasks, runners } = newRunners();
  for (const index of scattered.slice(1)) {
    (runners[index] as Runner).rests = index % 2 === 0;
    if (index % 2 === 1) tasks.drop(runners[index] as unknown as TaskRunner);
  }
  expect(tasks.isIdle).toBe(false);
  (runners[scattered[0] as number] as Runner).rests = true;
  expect(tasks.isIdle).toBe(true);
  for (const runner of tasks.all()) tasks.drop(runner);
  expect([...tasks.all()]).toEqual([]);
});

test("the end of a parent with n live children checks the tasks of the run a bounded number of times", async () => {
  const looks = async (children: number): Promise<number> => {
    const { runtime } = await setUp();
    const child = agent("child", async (ctx) => void (await ctx.waitForSignal("never")));
    let [isEnding, visits] = [false, 0];
    const parent = agent(
      "parent",
      async (ctx) => {
        for (let index = 0; index < children; index++) await spawnTask(ctx, child);
        await ctx.step("let the children wait", async () => (await settle(), null));
        isEnding = true;
        return "ended";
      },
      { subAgents: [child] },
    );
    const values: unknown = Reflect.get(Map.prototype, "values");
    Reflect.set(Map.prototype, "values", function counted(this: Map<unknown, unknown>): unknown {
      if (isEnding && this.has("t0") && this.has("t1")) visits += this.size;
      return Reflect.apply(values as Map<unknown, unknown>["values"], this, []);
    });
    try {
      const run = await runtime.submit(parent, null, { spawnBudget: { maxAgents: children + 1 } });
      expect((await run.result()).status).toBe("completed");
    } finally {
      Reflect.set(Map.prototype, "values", values);
    }
    return visits / children;
  };
  expect(await looks(80)).toBeLessThan(2 * (await looks(20)));
});

test("whether a run waits depends on its live tasks, and ended tasks are not checked", () => {
  const ended = {
    values: () => {
      throw new Error("asked about every task of the run");
    },
  };
  const live = { t0: {}, t7: {} };
  const state = { liveTasks: 2, tasks: ended, headcount: { tasks: live } } as unknown as RunState;
  const tasks = new RunningTasks(state, { hasSeat: (taskId) => taskId === "t7" } as RunHeadcount);
  expect(tasks.isWaiting).toBe(false);
  tasks.delay("t7" as TaskId);
  expect(tasks.isWaiting).toBe(true);
});
