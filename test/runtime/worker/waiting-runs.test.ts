import { expect, it } from "vitest";
import { agent, setUp, settle } from "../runtime-setup.ts";

/** More than a worker has room for at once. */
const crowd = 1_100;

it("serves others while more runs wait for a person than it has room for, and lets each go on when it is answered", async () => {
  const { runtime } = await setUp({ suspendAfterMs: Number.MAX_SAFE_INTEGER });
  const patient = agent("patient", async (ctx) => (await ctx.waitForSignal("go")) ?? null);
  const runs = await Promise.all(Array.from({ length: crowd }, () => runtime.submit(patient, null)));
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
