import { afterAll, beforeAll, expect, test } from "vitest";
import { Agent, OrchestratorAgent } from "../../../src/entries/index.ts";
import { rootTaskId, type Event, type TaskId } from "../../../src/kernel/index.ts";
import { openRuntime } from "../../../src/assembly/open-runtime.ts";
import { RunFold } from "../../../src/surfaces/view/run-fold.ts";
import { StepLog } from "../../../src/surfaces/view/step-log.ts";
import { scriptedModel } from "../../../src/testing/index.ts";

const runtime = await openRuntime({ store: "memory:", unknownPrice: "ignore" });
afterAll(() => runtime.close());

const child = "t1" as TaskId;
/** A run whose agent has hired a sub-agent that exhausts the budget. A top-up continues both tasks. */
let events: readonly Event[] = [];
let topUp = 0;

beforeAll(async () => {
  const ann = new Agent({ name: "ann", model: scriptedModel(["Yes."]) });
  const toolCalls = [{ name: "handoff_ann", input: { task: "Say it." } }];
  const model = scriptedModel([{ toolCalls }, "She agrees."]);
  const lead = new OrchestratorAgent({ name: "lead", model, subAgents: [ann] });
  const run = await runtime.submit(lead, "Ask her.", { budget: { maxTurns: 1 } });
  await run.result();
  await run.topUp({ maxTurns: 5 });
  // The end of the log is not the end of the run until the top-up was read.
  await run.result();
  const read: Event[] = [];
  for await (const event of run.events()) if ("seq" in event) read.push(event);
  events = read;
  topUp = read.findIndex(({ type }) => type === "budget_top_up");
});

function indexAfter(type: Event["type"], taskId: TaskId): number {
  return events.findIndex((event, at) => at > topUp && event.type === type && event.taskId === taskId);
}

function readUntil(last: number): { readonly fold: RunFold; readonly steps: StepLog } {
  const [fold, steps] = [new RunFold(), new StepLog()];
  for (const event of events.slice(0, last + 1)) {
    fold.add(event);
    steps.add(event);
  }
  return { fold, steps };
}

test("a root task that waits for a child that a top-up continues is live again, has its seat and is counted", () => {
  expect(events[topUp - 1]?.type).toBe("run_end");
  const view = readUntil(indexAfter("message_end", child)).fold.view();
  expect(view).toMatchObject({ status: "running", endedAt: null, live: 2, seats: 2 });
  expect(view.tasks.get(rootTaskId)).toMatchObject({ endedAt: null, hasSeat: true });
  expect(view.tasks.get(child)).toMatchObject({ status: "running", endedAt: null, hasSeat: true });
});

test("the view shows a child that a top-up continues as live from the event on that gives it a seat", () => {
  const view = readUntil(indexAfter("seat_grant", child)).fold.view();
  expect(view.tasks.get(child)).toMatchObject({ status: "running", endedAt: null, hasSeat: true });
  expect(view.live).toBeGreaterThan(0);
});

test("a hand-off that the end of its task interrupted continues with the task, and gets the result of the child", () => {
  const { fold, steps } = readUntil(events.length - 1);
  expect(fold.view()).toMatchObject({ status: "completed", live: 0, active: 0, seats: 0, recorded: 0 });
  const handOffs = steps.of(rootTaskId).filter(({ kind }) => kind === "tool");
  expect(handOffs.map(({ name, outcome }) => [name, outcome])).toEqual([
    ["handoff_ann", "cut"],
    ["handoff_ann", "ok"],
  ]);
});

test("a crash at any event replays as many steps as the unfinished tasks have recorded, also before their end", () => {
  const counts = events.map((_event, last) => {
    const { fold, steps } = readUntil(last);
    const { agentId, taskId, parentId, runId, at } = events[0] as Event;
    const crash = { agentId, taskId, parentId, runId, at, seq: last + 1, type: "run_recover" } as const;
    const recovery = { ...crash, data: { epoch: 2, recoveries: 1 } } as Event;
    fold.add(recovery);
    steps.add(recovery);
    const { recoveries, tasks } = fold.view();
    const replayed = [...tasks].reduce((sum, task) => sum + steps.replayedAt(last + 1, task.taskId), 0);
    expect([last, recoveries.at(-1)?.replayed]).toEqual([last, replayed]);
    return replayed;
  });
  expect(counts[topUp]).toBe(0);
  // The answer of the root that was recorded before its end, and the answer of its report.
  expect(counts[indexAfter("message_end", child)]).toBe(2);
});
