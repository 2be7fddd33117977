import { expect, it } from "vitest";
import type { HostedAgent, RunContext, TaskHandle } from "../../../src/kernel/index.ts";
import { agent, setUp, settle, typesOf, until } from "../runtime-setup.ts";

async function hire(ctx: RunContext, who: HostedAgent): Promise<TaskHandle> {
  const spawned = await ctx.spawn(who.id, null);
  if (spawned.kind === "refused") throw new Error(`refused: ${spawned.reason}`);
  return spawned.handle;
}

it("cancels a child whose hand-off took too long (H5)", async () => {
  const { runtime, clock } = await setUp();
  const slow = agent("slow", async (ctx) => void (await ctx.waitForSignal("never")));
  const boss = agent(
    "boss",
    async (ctx) => {
      const handle = await hire(ctx, slow);
      const { kind } = await ctx.ask(handle, null, { timeoutMs: 1_000 });
      return [kind, (await ctx.join(handle)).status];
    },
    { subAgents: [slow] },
  );
  const run = await runtime.submit(boss, null);
  await settle();
  await clock.advance(1_001);
  expect((await run.result()).output).toEqual(["timed_out", "cancelled"]);
});

it("does not count a child's wait for a person as time of its hand-off (H5)", async () => {
  const { runtime, clock, events } = await setUp();
  const clerk = agent("clerk", async (ctx) => {
    const { decision } = await ctx.approval({ toolName: "form", callId: "c1", input: null, reason: "?" });
    await ctx.waitForSignal("never");
    return decision;
  });
  const boss = agent(
    "boss",
    async (ctx) => (await ctx.ask(await hire(ctx, clerk), null, { timeoutMs: 1_000 })).kind,
    { subAgents: [clerk] },
  );
  const run = await runtime.submit(boss, null);
  const asked = async () =>
    (await events(run.runId)).flatMap((event) =>
      event.type === "approval_request" ? [event.data.approvalId] : [],
    );
  await until(async () => (await asked()).length === 1);
  await settle();
  await clock.advance(10_000);
  const [approvalId = ""] = await asked();
  await run.approve(approvalId, { decision: "skipped" });
  await until(async () => typesOf(await events(run.runId)).includes("approval_decision"));
  await settle();
  expect(typesOf(await events(run.runId))).not.toContain("run_end");
  await clock.advance(1_001);
  expect((await run.result()).output).toBe("timed_out");
});
