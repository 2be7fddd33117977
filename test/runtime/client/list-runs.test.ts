import { expect, it } from "vitest";
import { agent, gate, setUp, settle } from "../runtime-setup.ts";

it("lists runs with where they stand, whoever drives them (K1)", async () => {
  const { runtime, open } = await setUp();
  const held = gate();
  const clerk = agent("clerk", async (ctx) => {
    if (ctx.input === "wait") await ctx.waitForSignal("go");
    if (ctx.input === "work") await ctx.step("work", async () => held.promise.then(() => null));
    if (ctx.input === "fail") throw Object.assign(new Error("no"), { code: "invalid_argument" });
    return "done";
  });
  const elsewhere = await open();
  const options = { userId: "ann", tenantId: "acme" };
  const done = await runtime.submit(clerk, "answer", options);
  await done.result();
  await runtime.submit(clerk, "work");
  await settle();
  const { runs } = await elsewhere.list({ agentId: clerk.id });
  expect(runs.map(({ status }) => status)).toEqual(["running", "completed"]);
  expect((await elsewhere.list({ tenantId: "acme" })).runs).toMatchObject([
    { runId: done.runId, sessionId: done.sessionId, agentId: clerk.id, ...options, status: "completed" },
  ]);
  held.resolve();
});
