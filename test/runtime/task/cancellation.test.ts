import { expect, it } from "vitest";
import { Transcript, userMessage, type Model } from "../../../src/kernel/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { agent, gate, setUp, settle, simpleTool } from "../runtime-setup.ts";

it("C2: ctx.check() passes while recorded steps remain in the scope, and throws at the first step that is not recorded", async () => {
  const { runtime, clock } = await setUp({ suspendAfterMs: 100 });
  const seen: string[] = [];
  const worker = agent("worker", async (ctx) => {
    for (const name of ["a", "b"]) {
      ctx.check();
      await ctx.parallel({ only: (branch) => branch.step(name, async () => name) });
      seen.push(name);
    }
    ctx.check();
    await ctx.waitForSignal("go");
  });
  const run = await runtime.submit(worker, null);
  await settle();
  await clock.advance(101);
  await run.cancel("enough");
  expect((await run.result()).status).toBe("cancelled");
  expect(seen).toEqual(["a", "b", "a", "b"]);
});

it("a child can use the slot of a parent that waits in one branch", async () => {
  const { runtime } = await setUp({ concurrency: 1 });
  const child = agent("child", async (ctx) => ctx.step("work", async () => "child"));
  const parent = agent(
    "parent",
    async (ctx) => {
      const spawned = await ctx.spawn(child.id, null);
      if (spawned.kind === "refused") return null;
      const both = await ctx.parallel({
        waits: (branch) => branch.join(spawned.handle),
        works: (branch) => branch.step("own", async () => "own"),
      });
      return [both.waits.output, both.works];
    },
    { subAgents: [child] },
  );
  expect((await (await runtime.submit(parent, null)).result()).output).toEqual(["child", "own"]);
});

it("B1, C1: a reservation that waits is withdrawn when its task is cancelled", async () => {
  const { runtime } = await setUp();
  const answer = gate();
  const request = { transcript: Transcript.of([userMessage("hi")]), maxOutputTokens: 100 };
  const usage = { inputTokens: 10, outputTokens: 10 };
  const model = scriptedModel(Array.from({ length: 3 }, () => ({ text: "hm", usage })));
  const slow: Model = {
    provider: "slow",
    modelId: "slow",
    stream: (...args) => model.stream(...args),
    generate: async (...args) => {
      await answer.promise;
      return model.generate(...args);
    },
  };
  const models = { main: model, slow };
  const holder = agent("holder", async (ctx) => (await ctx.llm({ ...request, role: "slow" })).stopReason, {
    models,
  });
  const waiter = agent("waiter", async (ctx) => (await ctx.llm(request)).stopReason, { models });
  const boss = agent(
    "boss",
    async (ctx) => {
      const [one, two] = [await ctx.spawn(holder.id, null), await ctx.spawn(waiter.id, null)];
      if (one.kind === "refused" || two.kind === "refused") return null;
      await ctx.step("let them ask", async () => (await settle(), null));
      await ctx.cancel(two.handle, "not needed");
      const cancelled = await ctx.join(two.handle);
      await ctx.step("let it answer", async () => (answer.resolve(), null));
      return [cancelled.status, (await ctx.join(one.handle)).status];
    },
    { subAgents: [holder, waiter] },
  );
  const run = await runtime.submit(boss, null, { budget: { maxTokens: 200 } });
  expect((await run.result()).output).toEqual(["cancelled", "completed"]);
  expect(model.calls).toHaveLength(1);
});

it("C2: a cancelled task keeps the value that its code returned, with status cancelled", async () => {
  const { runtime } = await setUp();
  const worker = agent("worker", async (ctx) => {
    try {
      await ctx.waitForSignal("never");
    } catch {
      return "what there was";
    }
    return "all";
  });
  const run = await runtime.submit(worker, null);
  await settle();
  await run.cancel("enough");
  const { status, output } = await run.result();
  expect({ status, output }).toEqual({ status: "cancelled", output: "what there was" });
});

it("B5: the deadline clock of a task stops while a person is asked", async () => {
  const { runtime, clock, events } = await setUp({ suspendAfterMs: 100 });
  const wire = simpleTool({
    name: "wire",
    needsApproval: true,
    execute: async () => ({ output: { type: "text", text: "sent" }, isError: false }),
  });
  const clerk = agent(
    "clerk",
    async (ctx) => {
      const { output } = await ctx.tool({ callId: "1", toolName: "wire", input: { usd: 5 } });
      return output.type === "text" ? output.text : null;
    },
    { tools: [wire], budget: { deadlineMs: 1_000 } },
  );
  const run = await runtime.submit(clerk, null);
  await settle();
  await clock.advance(60_000);
  const requests = (await events(run.runId)).filter((event) => event.type === "approval_request");
  for (const { data } of requests) await run.approve(data.approvalId, { decision: "approved" });
  await clock.advance(500);
  const { status, output } = await run.result();
  expect({ status, output }).toEqual({ status: "completed", output: "sent" });
});
