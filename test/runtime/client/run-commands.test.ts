import { expect, it } from "vitest";
import { formatRunId, Priority, Transcript, userMessage, type Event } from "../../../src/kernel/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { all } from "../../../src/testing/contracts/store-fixtures.ts";
import { agent, gate, setUp, settle, typesOf, until } from "../runtime-setup.ts";
import { findRun } from "../find-run.ts";

it("pause() stops a run before its next step, also after a restart of the worker, until resume()", async () => {
  const { runtime, store, open, clock } = await setUp({ suspendAfterMs: 100 });
  const first = gate();
  const ran: string[] = [];
  const worker = () =>
    agent("worker", async (ctx) => {
      await ctx.step("one", async () => (await first.promise, ran.push("one")));
      await ctx.step("two", async () => ran.push("two"));
    });
  let run = await runtime.submit(worker(), null);
  await settle();
  await run.pause();
  await settle();
  first.resolve();
  await settle();
  await clock.advance(1_000);
  expect(ran).toEqual(["one"]);
  await runtime.close();
  await store.leases.dismiss("worker-1");
  const next = await open();
  next.register(worker());
  run = await findRun(next, run);
  await clock.advance(5_000);
  expect(ran).toEqual(["one"]);
  await run.resume();
  await clock.advance(1_000);
  expect((await run.result()).status).toBe("completed");
  expect(ran).toEqual(["one", "two"]);
});

it("J5: resume() repeats only the steps on whose recorded faults the run failed", async () => {
  const { runtime } = await setUp();
  const calls: string[] = [];
  let healthy = false;
  const worker = agent("worker", async (ctx) => {
    await ctx.step("paid", async () => calls.push("paid"));
    const both = await ctx.parallel({
      left: (branch) =>
        branch.step("left", async () => (calls.push("left"), healthy || Promise.reject(new Error("down")))),
      right: (branch) =>
        branch.step(
          "right",
          async () => (calls.push("right"), healthy || Promise.reject(new Error("down too"))),
        ),
    });
    return [both.left, both.right] as never;
  });
  const run = await runtime.submit(worker, null);
  expect((await run.result()).status).toBe("failed");
  healthy = true;
  await run.resume();
  const { status, output } = await run.result();
  expect({ status, output }).toEqual({ status: "completed", output: [true, true] });
  expect(calls.toSorted()).toEqual(["left", "left", "paid", "right", "right"]);
});

it("J5: topUp() resumes the child on whose failure the run ended", async () => {
  const { runtime } = await setUp({ runRetry: { maxRetries: 0 } });
  const model = scriptedModel(["one", "two", "three"]);
  const child = agent(
    "child",
    async (ctx) => {
      for (const text of ["a", "b", "c"]) await ctx.llm({ transcript: Transcript.of([userMessage(text)]) });
      return "child";
    },
    { models: { main: model }, budget: {} },
  );
  const parent = agent(
    "parent",
    async (ctx) => {
      const spawned = await ctx.spawn(child.id, null);
      if (spawned.kind === "refused") return "refused";
      const { status, output } = await ctx.join(spawned.handle);
      if (status !== "completed") throw new Error("my child failed");
      return output;
    },
    { subAgents: [child] },
  );
  const run = await runtime.submit(parent, null, { budget: { maxTurns: 2 } });
  expect((await run.result()).status).toBe("failed");
  await expect(run.topUp({ maxTurns: 0 })).rejects.toThrow("expected an amount above 0 for maxTokens");
  await run.topUp({ maxTurns: 5 });
  expect((await run.result()).output).toBe("child");
  expect(model.calls).toHaveLength(3);
});

it("H8: reprioritize() emits task_reprioritize for a suspended task", async () => {
  const { runtime, events } = await setUp();
  const worker = agent("worker", async (ctx) => void (await ctx.waitForSignal("go")));
  const run = await runtime.submit(worker, null);
  await settle();
  await run.reprioritize("t0", Priority.CRITICAL);
  await until(async () => typesOf(await events(run.runId)).includes("task_reprioritize"));
  await run.signal("go");
  expect((await run.result()).status).toBe("completed");
});

it("fork() repeats steps in flight at the fork point with new idempotency keys, starts with no spending, and changes no origin", async () => {
  const { runtime, events } = await setUp({ prices: { find: () => ({ inputUsd: 1e-6, outputUsd: 1e-6 }) } });
  const keys: string[] = [];
  const model = scriptedModel(["one", "two"]);
  const worker = agent(
    "worker",
    async (ctx) => {
      await ctx.llm({ transcript: Transcript.of([userMessage("hi")]) });
      await ctx.step("effect", async ({ idempotencyKey }) => keys.push(idempotencyKey));
      ctx.emitEvent({ type: "turn_start", data: { turn: 9 } });
      return ctx.step("end", async () => "end");
    },
    { models: { main: model } },
  );
  const run = await runtime.submit(worker, null);
  await run.result();
  const before = await events(run.runId);
  const cut = before.findIndex(({ type }) => type === "message_end");
  const fork = await run.fork({ at: cut });
  const { status, costUsd, usage, turns } = await fork.result();
  expect({ status, costUsd, turns, tokens: usage.inputTokens }).toEqual({
    status: "completed",
    costUsd: 0,
    turns: 0,
    tokens: 0,
  });
  expect(model.calls).toHaveLength(1);
  expect(new Set(keys).size).toBe(2);
  expect(await events(run.runId)).toEqual(before);
});

it("J8: fork() of a task that called continueAsNew leaves out its earlier journal and inherits its usage", async () => {
  const { runtime, store, events } = await setUp();
  const keys: string[] = [];
  const model = scriptedModel(["one", "two", "three"]);
  const worker = agent(
    "worker",
    async (ctx) => {
      await ctx.llm({ transcript: Transcript.of([userMessage("hi")]) });
      await ctx.step("effect", async ({ idempotencyKey }) => keys.push(idempotencyKey));
      return ctx.input === null ? ctx.continueAsNew("again") : ctx.step("end", async () => "end");
    },
    { models: { main: model } },
  );
  const run = await runtime.submit(worker, null);
  await run.result();
  const before = await events(run.runId);
  const at = before.findLast(({ type, data }) => type === "step_end" && data.name === "effect")?.seq ?? -1;
  const fork = await run.fork({ at });
  expect((await fork.result()).output).toBe("end");
  expect(model.calls).toHaveLength(2);
  expect(keys).toHaveLength(2);
  const [first] = await all(store.journal.read(fork.runId));
  expect(first?.steps?.map(({ address }) => address)).toEqual(["0/continued/0", "0/continued/1"]);
  const forkEvent = (await events(fork.runId)).find(
    (event): event is Event<"run_fork"> => event.type === "run_fork",
  );
  const replies = before.filter((event): event is Event<"message_end"> => event.type === "message_end");
  expect(forkEvent?.data.inherited.inputTokens).toBe(
    replies.reduce((sum, { data }) => sum + (data.usage?.inputTokens ?? 0), 0),
  );
});

it("fork() with a runId creates one run, and refuses the id of another existing run", async () => {
  const { runtime, store } = await setUp();
  const worker = agent("worker", async (ctx) => ctx.step("work", async () => "done"));
  const run = await runtime.submit(worker, null);
  await run.result();
  const runId = formatRunId("fork");
  const forks = await Promise.all([run.fork({ at: 1, runId }), run.fork({ at: 1, runId })]);
  await run.fork({ at: 1, runId });
  expect(forks.map((fork) => fork.runId)).toEqual([runId, runId]);
  expect((await forks[1]?.result())?.output).toBe("done");
  expect((await store.journal.list()).runs).toHaveLength(2);
  await expect(run.fork({ at: 0, runId })).rejects.toMatchObject({ code: "already_exists" });
  await expect(run.fork({ at: 1, runId: run.runId })).rejects.toMatchObject({ code: "already_exists" });
});

it("a task whose code throws is restarted after growing delays, and fails after maxRetries", async () => {
  const { runtime, clock } = await setUp({
    runRetry: { maxRetries: 2, baseDelayMs: 1_000 },
    suspendAfterMs: 100,
  });
  const paid: string[] = [];
  let starts = 0;
  const worker = agent("worker", async (ctx) => {
    starts++;
    await ctx.step("paid", async () => paid.push("paid"));
    throw new Error("a bug");
  });
  const run = await runtime.submit(worker, null);
  await settle();
  expect(starts).toBe(1);
  await clock.advance(900);
  expect(starts).toBe(1);
  await clock.advance(600);
  expect(starts).toBe(2);
  await clock.advance(3_000);
  expect({ starts, paid: paid.length }).toEqual({ starts: 3, paid: 1 });
  expect((await run.result()).status).toBe("failed");
});

it("J5: a task that failed on a recorded fault is not restarted", async () => {
  const { runtime } = await setUp();
  let starts = 0;
  const worker = agent("worker", async (ctx) => {
    starts++;
    try {
      await ctx.step("broken", () => Promise.reject(new Error("down")));
    } catch (cause) {
      throw new Error("wrapped", { cause });
    }
  });
  expect((await (await runtime.submit(worker, null)).result()).error?.message).toBe("wrapped");
  expect(starts).toBe(1);
});
