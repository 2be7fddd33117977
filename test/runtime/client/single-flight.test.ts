import { expect, it } from "vitest";
import { formatSessionId, type HostedAgent, type Event } from "../../../src/kernel/index.ts";
import { agent, gate, setUp, settle, simpleTool, text } from "../runtime-setup.ts";

const sessionId = formatSessionId("talk");

/** Waits for the signal `go` and returns its value. */
function listener(): HostedAgent {
  return agent("listener", async (ctx) => ctx.waitForSignal("go").then((value) => value ?? null));
}

it("S5: submit() to a session with a running run fails with agent_busy, which names the run", async () => {
  const { runtime } = await setUp();
  const work = gate();
  const clerk = agent("clerk", async (ctx) => ctx.step("work", async () => work.promise.then(() => "done")));
  const first = await runtime.submit(clerk, "one", { sessionId });
  await settle();
  await expect(runtime.submit(clerk, "two", { sessionId })).rejects.toMatchObject({
    code: "agent_busy",
    retry: "backoff",
    details: { runId: first.runId, sessionId, agentId: clerk.id, status: "running" },
  });
  work.resolve();
  await first.result();
  const second = await runtime.submit(clerk, "two", { sessionId });
  expect((await second.result()).status).toBe("completed");
});

it("S5: agent_busy lists the calls in flight", async () => {
  const { runtime, open } = await setUp();
  const work = gate();
  const hold = simpleTool({ name: "hold", execute: async () => work.promise.then(() => text("held")) });
  const call = { callId: "c1", toolName: "hold", input: {} };
  const clerk = agent("clerk", async (ctx) => ctx.tool(call).then(() => "done"), { tools: [hold] });
  await runtime.submit(clerk, "one", { sessionId });
  await settle();
  const otherWorker = await open();
  await expect(otherWorker.submit(clerk, "two", { sessionId })).rejects.toMatchObject({
    code: "agent_busy",
    details: { status: "running", waitsFor: ["call t0/0/0"] },
  });
  work.resolve();
});

it("S5: agent_busy lists a pending approval by the id that approve() takes", async () => {
  const { runtime, events } = await setUp();
  const work = gate();
  const hold = simpleTool({ name: "hold", execute: async () => work.promise.then(() => text("held")) });
  const pay = simpleTool({ name: "pay", needsApproval: true, execute: async () => text("paid") });
  const calls = ["hold", "pay"].map((toolName) => ({ callId: toolName, toolName, input: {} }));
  const clerk = agent("clerk", async (ctx) => ctx.tools(calls).then(() => "done"), { tools: [hold, pay] });
  const run = await runtime.submit(clerk, "one", { sessionId });
  await settle();
  const request = (await events(run.runId)).find(
    (event): event is Event<"approval_request"> => event.type === "approval_request",
  );
  const approvalId = request?.data.approvalId ?? "";
  await expect(runtime.submit(clerk, "two", { sessionId })).rejects.toMatchObject({
    code: "agent_busy",
    details: { waitsFor: ["call t0/0/0", "call t0/0/1", `approval ${approvalId}`] },
  });
  await run.approve(approvalId, { decision: "approved" });
  work.resolve();
  expect((await run.result()).output).toBe("done");
});

it("S5: a suspended run takes a submission to its session as steering, and submit() returns its handle", async () => {
  const { runtime, clock, store } = await setUp();
  const clerk = listener();
  const first = await runtime.submit(clerk, "one", { sessionId });
  await settle();
  await clock.advance(10_000);
  const second = await runtime.submit(clerk, "two", { sessionId });
  expect(second.runId).toBe(first.runId);
  await settle();
  const resolves = [];
  for await (const commit of store.journal.read(first.runId)) resolves.push(...(commit.resolves ?? []));
  expect(resolves).toMatchObject([{ taskId: "t0", wait: "steer", value: "two" }]);
  await first.signal("go", "done");
  expect((await second.result()).output).toBe("done");
});

it("S5: a run that only waits takes a submission as steering before it is suspended", async () => {
  const { runtime } = await setUp();
  const clerk = listener();
  const first = await runtime.submit(clerk, "one", { sessionId });
  await settle();
  expect((await runtime.submit(clerk, "two", { sessionId })).runId).toBe(first.runId);
  await first.signal("go");
});

it('S5: with whenBusy: "steer", a running run takes a submission as steering', async () => {
  const { runtime } = await setUp();
  const work = gate();
  const clerk = agent("clerk", async (ctx) => ctx.step("work", async () => work.promise.then(() => "done")));
  const first = await runtime.submit(clerk, "one", { sessionId });
  await settle();
  const second = await runtime.submit(clerk, "two", { sessionId, whenBusy: "steer" });
  expect(second.runId).toBe(first.runId);
  work.resolve();
});

it("S5: submissions without a sessionId get sessions of their own", async () => {
  const { runtime } = await setUp();
  const clerk = listener();
  const runs = await Promise.all([runtime.submit(clerk, "one"), runtime.submit(clerk, "two")]);
  expect(new Set(runs.map((run) => run.sessionId)).size).toBe(2);
});

it("S5: of many simultaneous submissions to one session, from several workers, one creates a run", async () => {
  const { runtime, open, store } = await setUp();
  const work = gate();
  const clerk = agent("clerk", async (ctx) => ctx.step("work", async () => work.promise.then(() => "done")));
  const workers = [runtime, await open(), await open()];
  const outcomes = await Promise.allSettled(
    Array.from({ length: 12 }, (_, index) =>
      (workers[index % 3] ?? runtime).submit(clerk, index, { sessionId }),
    ),
  );
  expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  expect((await store.journal.list({ sessionId })).runs).toHaveLength(1);
  work.resolve();
});

it("S5: a repeated submission with a runId whose input became steering does not steer twice", async () => {
  const { runtime } = await setUp();
  const clerk = listener();
  const first = await runtime.submit(clerk, "one", { sessionId });
  await settle();
  const options = { sessionId, runId: `run_second` as typeof first.runId };
  for (let time = 0; time < 2; time++)
    expect((await runtime.submit(clerk, "two", options)).runId).toBe(first.runId);
  await settle();
  await first.signal("go");
  await first.result();
  // The run ended without reading the steering, which was then submitted as a run with this id.
  expect((await runtime.submit(clerk, "two", options)).runId).toBe(options.runId);
});

it("S5: a submission by another user or tenant never becomes steering, and fails with agent_busy", async () => {
  const { runtime, store } = await setUp();
  const owner = { sessionId, userId: "ada", tenantId: "house" };
  const clerk = listener();
  const run = await runtime.submit(clerk, "one", owner);
  await settle();
  const others = [
    { sessionId, tenantId: "house" },
    { ...owner, userId: "bob" },
    { ...owner, tenantId: "inn" },
  ];
  for (const other of others) {
    for (const whenBusy of ["refuse", "steer"] as const)
      await expect(runtime.submit(clerk, "What did she say?", { ...other, whenBusy })).rejects.toMatchObject({
        code: "agent_busy",
        message: expect.stringContaining(
          "The run belongs to another user: wait until it ends, or use another session",
        ),
      });
  }
  expect(await store.mailbox.read(run.runId)).toEqual([]);
  expect((await runtime.submit(clerk, "two", owner)).runId).toBe(run.runId);
  await run.signal("go", "on");
  expect((await run.result()).output).toBe("on");
});
