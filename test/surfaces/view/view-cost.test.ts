import { Session } from "node:inspector/promises";
import { setFlagsFromString } from "node:v8";
import { expect, test } from "vitest";
import { rootTaskId, type Event } from "../../../src/kernel/index.ts";
import { RunFold } from "../../../src/surfaces/view/run-fold.ts";
import { RunHistory } from "../../../src/surfaces/view/run-history.ts";
import { StepLog } from "../../../src/surfaces/view/step-log.ts";
import { storedView, viewOfStored } from "../../../src/surfaces/view/stored-view.ts";

/** Executes `work`, and returns how often functions and blocks of the view's files were executed. */
async function executions(work: () => void): Promise<number> {
  // Optimised code does not count its executions.
  for (const flag of ["--no-opt", "--no-maglev"]) setFlagsFromString(flag);
  const session = new Session();
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
  work();
  const { result } = await session.post("Profiler.takePreciseCoverage");
  await session.post("Profiler.stopPreciseCoverage");
  session.disconnect();
  for (const flag of ["--opt", "--maglev"]) setFlagsFromString(flag);
  const files = result.filter(({ url }) => url.includes("/surfaces/view/") && !url.includes("/test/"));
  expect(files.length).toBeGreaterThan(0);
  let count = 0;
  for (const { functions } of files)
    for (const { ranges } of functions) for (const range of ranges) count += range.count;
  return count;
}

test("an event costs the view the same work in a run of 5,000 tasks as in a run of 10, also with a view per frame", async () => {
  const costs: number[] = [];
  for (const tasks of [10, 5_000]) {
    const [fold, steps] = [new RunFold(), new StepLog()];
    for (const event of hired(tasks)) {
      fold.add(event);
      steps.add(event);
    }
    const events = turns(tasks, 1_000);
    costs.push(
      await executions(() => {
        for (const event of events) {
          fold.add(event);
          steps.add(event);
        }
      }),
    );
  }
  const [few = 0, many = 0] = costs;
  expect(few).toBeGreaterThan(1_000);
  expect(many).toBeLessThan(few * 1.1);
});

test("the difference of two views of a large run has the tasks that changed, and costs only the parts that contain them", async () => {
  const fold = new RunFold();
  for (const event of hired(5_000)) fold.add(event);
  const before = fold.view();
  for (const event of turns(5_000, 8)) fold.add(event);
  const { tasks } = fold.view();
  expect(tasks.hasKeysOf(before.tasks)).toBe(true);
  let changed: readonly string[] = [];
  const cost = await executions(() => {
    changed = [...tasks.changedSince(before.tasks)].map(({ taskId }) => taskId);
  });
  expect(changed).toEqual(["t0", "t1", "t2", "t3", "t4"]);
  expect(cost).toBeLessThan(1_000);
});

test("a run history that can read stored views keeps 16 of them, and reads fewer than 1,000 events for any position", async () => {
  const events = [...hired(10), ...turns(10, 40_000)];
  const whole = new RunHistory(async function* () {});
  const viewsRead: number[] = [];
  let eventsRead = 0;
  const bounded = new RunHistory(
    async function* (from, to) {
      eventsRead = to - from + 1;
      yield* events.slice(from, to + 1);
    },
    {
      readView: async (seq) => {
        viewsRead.push(seq);
        const fold = new RunFold();
        for (const event of events.slice(0, seq + 1)) fold.add(event);
        return viewOfStored(
          JSON.parse(JSON.stringify(storedView(fold.view()))) as ReturnType<typeof storedView>,
        );
      },
    },
  );
  for (const event of events) {
    whole.add(event);
    bounded.add(event);
  }
  expect([whole.keptViews, bounded.keptViews]).toEqual([40, 16]);
  for (const seq of [500, 5_500, 39_900]) {
    eventsRead = 0;
    const fold = new RunFold();
    for (const event of events.slice(0, seq + 1)) fold.add(event);
    expect(storedView(await bounded.at(seq))).toEqual(storedView(fold.view()));
    expect(eventsRead).toBeLessThan(1_000);
  }
  expect(viewsRead).toEqual([4_999]);
});

test("a view that is continued from a stored view equals the view of all events", () => {
  const events = [...hired(100), ...turns(100, 500)];
  const first = new RunFold();
  for (const event of events.slice(0, 300)) first.add(event);
  const stored = JSON.parse(JSON.stringify(storedView(first.view()))) as ReturnType<typeof storedView>;
  const second = new RunFold(viewOfStored(stored));
  for (const event of events) {
    first.add(event);
    second.add(event);
  }
  expect(storedView(second.view())).toEqual(storedView(first.view()));
});

function at(seq: number, type: string, data: object, taskId: string = rootTaskId): Event {
  const parentId = taskId === rootTaskId ? null : rootTaskId;
  return { seq, at: seq, runId: "run_1", taskId, agentId: "a", parentId, type, data } as unknown as Event;
}

/** Returns the events of a root task that has hired so many tasks. */
function hired(tasks: number): readonly Event[] {
  const supervision = { spawnBudget: { maxAgents: null }, priority: 2 };
  const start = { agentId: "a", sessionId: "s", input: "go", supervision, metadata: {} };
  return Array.from({ length: tasks }, (_each, seq) =>
    seq === 0
      ? at(0, "run_start", start)
      : at(seq, "spawn_start", { childTaskId: `t${seq}`, agentId: "a", priority: 2 }),
  );
}

/** Returns so many events of tasks that call a model in turn. */
function turns(tasks: number, events: number): readonly Event[] {
  const usage = {
    inputTokens: 10,
    outputTokens: 1,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    reasoningTokens: 0,
    costUsd: 0.25,
  };
  return Array.from({ length: events }, (_each, index) => {
    const taskId = `t${(Math.floor(index / 2) % (tasks - 1)) + 1}`;
    return index % 2 === 0
      ? at(tasks + index, "message_start", { role: "assistant", attempt: 1 }, taskId)
      : at(tasks + index, "message_end", { message: { role: "assistant", content: [] }, usage }, taskId);
  });
}
