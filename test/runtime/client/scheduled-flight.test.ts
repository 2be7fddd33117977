import { describe, expect, test } from "vitest";
import { userMessage } from "../../../src/kernel/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { FakeClock } from "../../../src/testing/index.ts";
import { agent, settle } from "../runtime-setup.ts";
import { removeStoresAfterEach, twoStores } from "../two-stores.ts";

removeStoresAfterEach();

const listener = agent("listener", async (ctx) => (await ctx.steering()).length, {
  messageOf: (input) => userMessage(JSON.stringify(input)),
});

describe.each(twoStores)("S5: a run with a later startAt in a %s store", (_name, prepare) => {
  async function scheduled() {
    const clock = new FakeClock();
    const runtime = await createRuntime({ store: await (await prepare())(), clock });
    const options = { sessionId: "talk", startAt: clock.now() + 60_000 };
    return { clock, runtime, run: await runtime.submit(listener, "later", options) };
  }

  test.each([
    ["before anything else", undefined],
    ["after mail has woken it", 1_000],
    ["after it was released again", 10_000],
    ["while it is paused", 0],
  ] as const)(
    "S5: another input to a session with a scheduled run is refused with agent_busy, which names the start time, %s",
    async (_when, passed) => {
      const { runtime, run, clock } = await scheduled();
      if (passed !== undefined) {
        await (passed === 0 ? run.pause() : run.steer("first"));
        await settle();
        await clock.advance(passed);
        await settle();
      }
      await expect(runtime.submit(listener, "now", { sessionId: "talk" })).rejects.toMatchObject({
        code: "agent_busy",
        details: { runId: run.runId, waitsFor: ["its start time"] },
      });
      await runtime.close();
    },
  );

  test("S5: another input to a scheduled run's session with whenBusy steer becomes steering that the run reads at its start", async () => {
    const { runtime, run, clock } = await scheduled();
    const options = { sessionId: "talk", whenBusy: "steer" } as const;
    expect((await runtime.submit(listener, "now", options)).runId).toBe(run.runId);
    await settle();
    await clock.advance(61_000);
    expect((await run.result()).output).toBe(1);
    await runtime.close();
  });
});
