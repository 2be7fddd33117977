import { describe, expect, it } from "vitest";
import type { Event, HostedAgent, RunId, Store } from "../../../src/kernel/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { FakeClock } from "../../../src/testing/index.ts";
import { findRun } from "../find-run.ts";
import { agent, gate, readAll, settle } from "../runtime-setup.ts";
import { removeStoresAfterEach, twoStores } from "../two-stores.ts";

removeStoresAfterEach();

async function stepEnds(store: Store, runId: RunId): Promise<readonly Event<"step_end">["data"][]> {
  const events = await readAll(store, runId);
  return events.filter((event) => event.type === "step_end").map(({ data }) => data);
}

for (const [storeName, prepare] of twoStores)
  describe(`the event step_end on the ${storeName} store`, () => {
    it("the event step_end has the name of the step and the time that its body took, in the commit that records the step", async () => {
      const clock = new FakeClock();
      const store = await (await prepare())();
      await using runtime = await createRuntime({ store, clock });
      const work = gate();
      const worker = agent("worker", async (ctx) => {
        await ctx.step("fetch", async () => work.promise.then(() => null));
        await ctx.now();
        return ctx.step("fail", async () => Promise.reject(new TypeError("no"))).catch(() => "caught");
      });
      const run = await runtime.submit(worker, null);
      await settle();
      await clock.advance(1_250);
      work.resolve();
      expect((await run.result()).output).toBe("caught");
      expect(await stepEnds(store, run.runId)).toEqual([
        { name: "fetch", durationMs: 1_250 },
        { name: "fail", durationMs: 0, status: "error" },
      ]);
      for await (const { steps = [], events = [] } of store.journal.read(run.runId)) {
        const recorded = steps.filter(({ kind }) => kind === "step").map(({ name }) => name);
        const ended = events.filter((event) => event.type === "step_end").map(({ data }) => data.name);
        expect(ended).toEqual(recorded);
      }
    });

    it("E4: a step that another process replays emits no second step_end", async () => {
      const clock = new FakeClock();
      const openStore = await prepare();
      let calls = 0;
      const worker: HostedAgent = agent("worker", async (ctx) => {
        await ctx.step("once", async () => ++calls);
        await ctx.waitForSignal("go");
        return ctx.step("last", async () => ++calls);
      });
      const first = await createRuntime({ store: await openStore(), clock });
      const submitted = await first.submit(worker, null);
      await settle();
      await first.close();
      const store = await openStore();
      await using second = await createRuntime({ store, clock });
      second.register(worker);
      const run = await findRun(second, submitted);
      await run.signal("go");
      expect((await run.result()).output).toBe(2);
      const names = (await stepEnds(store, run.runId)).map(({ name }) => name);
      expect(names).toEqual(["once", "last"]);
    });
  });
