import { expect, it } from "vitest";
import { agent, gate, setUp, settle } from "../runtime-setup.ts";

it("K1: list() returns the status of runs that another worker executes", async () => {
  const { runtime, open } = await setUp();
  const work = gate();
  const clerk = agent("clerk", async (ctx) => {
    if (ctx.input === "wait") await ctx.waitForSignal("go");
    if (ctx.input === "work") await ctx.step("work", async () => work.promise.then(() => null));
    if (ctx.input === "fail") throw Object.assign(new Error("no"), { code: "invalid_argument" });
    return "done";
  });
  const otherWorker = await open();
  const options = { userId: "ann", tenantId: "acme" };
  const done = await runtime.submit(clerk, "answer", options);
  await done.result();
  await runtime.submit(clerk, "work");
  await settle();
  const { runs } = await otherWorker.list({ agentId: clerk.id });
  expect(runs.map(({ status }) => status)).toEqual(["running", "completed"]);
  expect((await otherWorker.list({ tenantId: "acme" })).runs).toMatchObject([
    { runId: done.runId, sessionId: done.sessionId, agentId: clerk.id, ...options, status: "completed" },
  ]);
  work.resolve();
});
