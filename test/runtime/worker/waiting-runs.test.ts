import { expect, it } from "vitest";
import { agent, setUp, settle } from "../runtime-setup.ts";

/** More runs than a worker executes at the same time. */
const runCount = 1_100;

it("runs that wait for a signal take no slot: a worker executes other runs meanwhile, and resumes each run on its signal", async () => {
  const { runtime } = await setUp({ suspendAfterMs: Number.MAX_SAFE_INTEGER });
  const waiting = agent("waiting", async (ctx) => (await ctx.waitForSignal("go")) ?? null);
  const runs = await Promise.all(Array.from({ length: runCount }, () => runtime.submit(waiting, null)));
  await settle();
  const other = await runtime.submit(
    agent("other", async () => "served"),
    null,
  );
  expect((await other.result()).output).toBe("served");
  for (const [index, run] of runs.entries()) await run.signal("go", index);
  const results = await Promise.all(runs.map((run) => run.result()));
  expect(results.map(({ output }) => output)).toEqual(runs.map((_, index) => index));
  await runtime.close();
});
