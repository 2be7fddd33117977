import { expect, it } from "vitest";
import type { Event } from "../../../src/kernel/index.ts";
import { agent, readAll, setUp, settle, simpleTool, text, until } from "../runtime-setup.ts";

const question = {
  toolName: "form",
  callId: "c1",
  input: { message: "Your name?" },
  reason: "asked by a server",
};

it("J1, J7: a tool asks a person once, also if another process takes over", async () => {
  const { runtime, store, open, clock } = await setUp({ suspendAfterMs: 100 });
  const bodies: string[] = [];
  const form = simpleTool({
    name: "form",
    execute: async (_input, { ctx }) => {
      bodies.push("begun");
      const decision = await ctx.approval(question);
      return text(JSON.stringify(decision));
    },
  });
  const clerk = agent(
    "clerk",
    async (ctx) => {
      const { output } = await ctx.tool({ callId: "c1", toolName: "form", input: {} });
      return output.type === "text" ? output.text : null;
    },
    { tools: [form], budget: { deadlineMs: 1_000 } },
  );
  const run = await runtime.submit(clerk, null);
  const requests = async () =>
    (await readAll(store, run.runId)).filter(
      (event): event is Event<"approval_request"> => event.type === "approval_request",
    );
  await until(async () => (await requests()).length === 1);
  // B5: the deadline clock stops while a task waits for a person, and nothing is reserved.
  await clock.advance(10_000);
  await runtime.close();
  const second = await open();
  second.register(clerk);
  const handle = await second.find(run.runId);
  await settle();
  const [asked, ...others] = await requests();
  expect(others).toEqual([]);
  expect(asked?.data).toMatchObject(question);
  await handle?.approve(asked?.data.approvalId ?? "", { decision: "approved", input: { name: "Ada" } });
  expect((await handle?.result())?.output).toBe(`{"decision":"approved","input":{"name":"Ada"},"by":"user"}`);
  expect(bodies.length).toBeGreaterThan(1);
});

it("J10, J2: ctx.approval refuses a question that is not JSON, and a second question in flight", async () => {
  const { runtime } = await setUp();
  const worker = agent("worker", async (ctx) => {
    const input = { when: new Date(0) } as never;
    const first = await ctx.approval({ ...question, input }).catch((error: Error) => error.message);
    const one = ctx.approval(question);
    const second = await ctx.approval(question).catch((error: Error) => error.message);
    return [JSON.stringify(first), JSON.stringify(second), (await one).decision];
  });
  const run = await runtime.submit(worker, null);
  for await (const event of run.events({ types: ["approval_request"] })) {
    if (event.type !== "approval_request") continue;
    await run.approve(event.data.approvalId, { decision: "denied" });
    break;
  }
  const { output } = await run.result();
  expect(output).toEqual([
    expect.stringContaining("the question of form"),
    expect.stringContaining("approval of form was called while approval of form was in flight"),
    "denied",
  ]);
});
