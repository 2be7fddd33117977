import { afterAll, expect, test } from "vitest";
import { Agent } from "../../../src/assembly/agent.ts";
import type { Event, RunHandle } from "../../../src/kernel/index.ts";
import { openRuntime } from "../../../src/assembly/open-runtime.ts";
import { RunFold } from "../../../src/surfaces/view/run-fold.ts";
import { StepLog } from "../../../src/surfaces/view/step-log.ts";
import { scriptedModel } from "../../../src/testing/index.ts";

const runtime = await openRuntime({ store: "memory:", unknownPrice: "ignore" });
afterAll(() => runtime.close());

async function eventsOf(run: RunHandle): Promise<readonly Event[]> {
  const events: Event[] = [];
  for await (const event of run.events({ follow: false })) if ("seq" in event) events.push(event);
  return events;
}

test.each([{ input: "Shorter." }, {}])(
  "a fork with %j at any event shares the events up to this event, and its own calls are steps after it",
  async (change) => {
    const model = scriptedModel(Array.from({ length: 100 }, (_each, at) => `answer ${at}`));
    const origin = await runtime.submit(
      new Agent({ name: `scout-${Object.keys(change).length}`, model }),
      "look",
    );
    await origin.result();
    const recorded = await eventsOf(origin);
    for (const { seq: at } of recorded) {
      const before = model.calls.length;
      const fork = await origin.fork({ at, ...change });
      await fork.result();
      const events = await eventsOf(fork);
      const [fold, steps] = [new RunFold(), new StepLog()];
      for (const event of events) {
        fold.add(event);
        steps.add(event);
      }
      const { forkedFrom, tasks } = fold.view();
      const shared = forkedFrom?.at ?? -1;
      expect(shared).toBeLessThanOrEqual(at);
      expect(events.slice(0, shared + 1)).toEqual(
        recorded.slice(0, shared + 1).map((event) => ({ ...event, runId: fork.runId })),
      );
      for (const task of tasks) {
        const calls = steps.of(task.taskId).filter(({ outcome }) => outcome === "ok");
        const own = calls.filter(({ endSeq }) => (endSeq ?? Infinity) > shared);
        expect([at, own.length]).toEqual([at, model.calls.length - before]);
        expect(steps.of(task.taskId).filter(({ endSeq }) => endSeq === null)).toEqual([]);
      }
    }
  },
);

test("the view shows a call that a fork with an input makes again as in flight once", async () => {
  const model = scriptedModel(["one", "two"]);
  const origin = await runtime.submit(new Agent({ name: "guide", model }), "look");
  await origin.result();
  const start = (await eventsOf(origin)).findLast(({ type }) => type === "message_start");
  const fork = await origin.fork({ at: start?.seq ?? 0, input: "Shorter." });
  const [fold, steps] = [new RunFold(), new StepLog()];
  for await (const event of fork.events()) {
    if (!("seq" in event)) continue;
    fold.add(event);
    steps.add(event);
    if (event.type === "message_start" && event.seq > (fold.view().forkedFrom?.at ?? Infinity)) break;
  }
  const [root] = fold.view().tasks;
  expect(root?.openCalls).toBe(1);
  expect(root && steps.of(root.taskId).map(({ outcome }) => outcome)).toEqual(["cut", null]);
});
