import { expect, it } from "vitest";
import { agent, setUp, settle } from "../runtime-setup.ts";

it("close() releases a run when its call in flight has settled, without waiting for a timer", async () => {
  const { runtime } = await setUp({ closeGraceMs: 60_000 });
  const answer = Promise.withResolvers<string>();
  let calls = 0;
  const clerk = agent("clerk", async (ctx) => {
    await ctx.step("first", () => (calls++, answer.promise));
    return ctx.step("second", async () => String(calls++));
  });
  await runtime.submit(clerk, null);
  await settle();
  const closing = runtime.close();
  await settle();
  answer.resolve("answered");
  // The clock of the test does not move.
  await closing;
  expect(calls).toBe(1);
});
