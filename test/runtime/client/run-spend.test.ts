import { describe, expect, it } from "vitest";
import {
  Transcript,
  userMessage,
  type HostedAgent,
  type RunSummary,
  type Runtime,
} from "../../../src/kernel/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { FakeClock, scriptedModel } from "../../../src/testing/index.ts";
import { findRun } from "../find-run.ts";
import { agent, settle } from "../runtime-setup.ts";
import { removeStoresAfterEach, twoStores } from "../two-stores.ts";

removeStoresAfterEach();

const usage = { inputTokens: 100, outputTokens: 10 };
const reply = { text: "Hello", usage };
const prices = { find: () => ({ inputUsd: 0.01, outputUsd: 0.1 }) };

/** An agent that calls its model, waits for a signal, and calls its model again. */
const newClerk = (): HostedAgent =>
  agent(
    "clerk",
    async (ctx) => {
      const transcript = Transcript.of([userMessage("go")]);
      await ctx.llm({ transcript });
      await ctx.waitForSignal("go");
      await ctx.llm({ transcript });
      return null;
    },
    { models: { main: scriptedModel([reply, reply]) } },
  );

async function spentIn(
  runtime: Runtime,
): Promise<{ [Key in keyof RunSummary]?: RunSummary[Key] | undefined }> {
  const [run] = (await runtime.list()).runs;
  return { status: run?.status, usage: run?.usage, costUsd: run?.costUsd, turns: run?.turns };
}

for (const [storeName, prepare] of twoStores)
  describe(`the spending of runs on the ${storeName} store`, () => {
    it("K3: list() returns the usage and cost of a run while it waits and after its end, also in another process", async () => {
      const openStore = await prepare();
      const clock = new FakeClock();
      const clerk = newClerk();
      const first = await createRuntime({ store: await openStore(), clock, prices });
      const submitted = await first.submit(clerk, "go");
      await settle();
      expect(await spentIn(first)).toEqual({
        status: "waiting",
        usage: expect.objectContaining({ ...usage, costUsd: 2 }),
        costUsd: 2,
        turns: 1,
      });
      await first.close();
      await using second = await createRuntime({ store: await openStore(), clock, prices });
      second.register(clerk);
      const run = await findRun(second, submitted);
      await run.signal("go");
      const result = await run.result();
      expect(await spentIn(second)).toEqual({
        status: "completed",
        usage: result.usage,
        costUsd: 4,
        turns: 2,
      });
      expect((await second.list()).runs[0]?.unreported).toEqual(result.unreported);
    });

    it("K3: a fork reports none of the usage of its origin", async () => {
      const openStore = await prepare();
      const clock = new FakeClock();
      const clerk = newClerk();
      const store = await openStore();
      await using runtime = await createRuntime({ store, clock, prices });
      const origin = await runtime.submit(clerk, "go");
      await settle();
      const fork = await origin.fork({ at: await store.events.lastSeq(origin.runId) });
      await settle();
      const [forked] = (await runtime.list()).runs;
      expect([forked?.runId, forked?.turns, forked?.costUsd]).toEqual([fork.runId, 0, 0]);
    });
  });
