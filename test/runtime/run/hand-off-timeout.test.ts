import { expect, it } from "vitest";
import { agent, setUp, settle, spawnTask, typesOf, until } from "../runtime-setup.ts";

it("H5: ask() cancels the child task when the hand-off times out", async () => {
  const { runtime, clock } = await setUp();
  const slow = agent("slow", async (ctx) => void (await ctx.waitForSignal("never")));
  const parent = agent(
    "parent",
    async (ctx) => {
      const handle = await spawnTask(ctx, slow);
      const { kind } = await ctx.ask(handle, null, { timeoutMs: 1_000 });
      return [kind, (await ctx.join(handle)).status];
    },
    { subAgents: [slow] },
  );
  const run = await runtime.submit(parent, null);
  await settle();
  await clock.advance(1_001);
  expect((await run.result()).output).toEqual(["timed_out", "cancelled"]);
});

it("H5: the timeout of a hand-off to a child stops while the child waits for a person", async () => {
  const { runtime, clock, events } = await setUp();
  const clerk = agent("clerk", async (ctx) => {
    const { decision } = await ctx.approval({ toolName: "form", callId: "c1", input: null, reason: "?" });
    await ctx.waitForSignal("never");
    return decision;
  });
  const parent = agent(
    "parent",
    async (ctx) => (await ctx.ask(await spawnTask(ctx, clerk), null, { timeoutMs: 1_000 })).kind,
    { subAgents: [clerk] },
  );
  const run = await runtime.submit(parent, null);
  const approvalIds = async () =>
    (await events(run.runId)).flatMap((event) =>
      event.type === "approval_request" ? [event.data.approvalId] : [],
    );
  await until(async () => (await approvalIds()).length === 1);
  await settle();
  await clock.advance(10_000);
  const [approvalId = ""] = await approvalIds();
  await run.approve(approvalId, { decision: "skipped" });
  await until(async () => typesOf(await events(run.runId)).includes("approval_decision"));
  await settle();
  expect(typesOf(await events(run.runId))).not.toContain("run_end");
  await clock.advance(1_001);
  expect((await run.result()).output).toBe("timed_out");
});
