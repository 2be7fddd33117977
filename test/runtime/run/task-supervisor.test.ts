import { expect, it } from "vitest";
import {
  Priority,
  Transcript,
  userMessage,
  type HostedAgent,
  type RunContext,
  type TaskHandle,
  type SpawnOptions,
} from "../../../src/kernel/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { agent, gate, setUp, settle, simpleTool, text, typesOf, until } from "../runtime-setup.ts";
import { foundRun } from "../find-run.ts";

async function hire(ctx: RunContext, who: HostedAgent, options: SpawnOptions = {}): Promise<TaskHandle> {
  const spawned = await ctx.spawn(who.id, null, options);
  if (spawned.kind === "refused") throw new Error(`refused: ${spawned.reason}`);
  return spawned.handle;
}

const twoSeats = { spawnBudget: { maxAgents: 2, allowPreempt: true } };

it("refuses a seat as a value that says who holds them (H4)", async () => {
  const { runtime } = await setUp();
  const idle = agent("idle", async (ctx) => void (await ctx.waitForSignal("never")));
  const boss = agent(
    "boss",
    async (ctx) => {
      await hire(ctx, idle);
      const refused = await ctx.spawn(idle.id, null);
      return refused.kind === "refused" ? refused.holders.map(({ taskId }) => taskId) : null;
    },
    { subAgents: [idle] },
  );
  expect((await (await runtime.submit(boss, null, twoSeats)).result()).output).toEqual(["t0", "t1"]);
});

it("lets a HIGH newcomer wait until the victim's calls settle, recalls the victim, and pays nothing again (H2, H5, H7)", async () => {
  const { runtime, events } = await setUp();
  const inCall = gate<string>();
  const urgentMayEnd = gate();
  const parts: string[] = [];
  const low = agent("low", async (ctx) => {
    parts.push(await ctx.step("first", async () => inCall.promise));
    parts.push(await ctx.step("second", async () => "second"));
    return parts.length;
  });
  const high = agent("high", async (ctx) =>
    ctx.step("urgent", async () => (await urgentMayEnd.promise, "urgent")),
  );
  const boss = agent(
    "boss",
    async (ctx) => {
      const one = await hire(ctx, low, { priority: Priority.LOW });
      await ctx.step("let it begin", async () => (await settle(), null));
      const two = await hire(ctx, high, { priority: Priority.HIGH });
      return (await ctx.joinAll([one, two])).map(({ output }) => output);
    },
    { subAgents: [low, high] },
  );
  const run = await runtime.submit(boss, null, twoSeats);
  await settle();
  await settle();
  expect(typesOf(await events(run.runId))).not.toContain("seat_grant");
  inCall.resolve("first");
  await until(async () => typesOf(await events(run.runId)).includes("seat_grant"));
  await settle();
  expect(parts).toEqual(["first"]);
  urgentMayEnd.resolve();
  expect((await run.result()).output).toEqual([2, "urgent"]);
  expect(typesOf(await events(run.runId)).filter((type) => type.startsWith("seat_"))).toEqual([
    "seat_yield",
    "seat_pause",
    "seat_grant",
    "seat_recall",
  ]);
});

it("pauses a victim that is inside a tool whose body waits to take a step (H2, J7)", async () => {
  const { runtime } = await setUp();
  const before = gate();
  const nested = {
    name: "nested",
    description: "nested",
    inputSchema: { type: "object" as const },
    risk: "safe" as const,
    destructive: false,
    edits: false,
    concurrency: "parallel" as const,
    timeoutMs: null,
    suspends: false,
    needsApproval: () => false,
    parse: (input: unknown) => input,
    execute: async (_input: unknown, { ctx }: { ctx: RunContext }) => {
      await before.promise;
      const value = await ctx.step("inner", async () => "inner");
      return { output: { type: "text" as const, text: value }, isError: false };
    },
  };
  const low = agent(
    "low",
    async (ctx) => {
      const { output } = await ctx.tool({ callId: "1", toolName: "nested", input: {} });
      return output.type === "text" ? output.text : null;
    },
    { tools: [nested] },
  );
  const high = agent("high", async (ctx) => ctx.step("urgent", async () => "urgent"));
  const boss = agent(
    "boss",
    async (ctx) => {
      const one = await hire(ctx, low, { priority: Priority.LOW });
      await ctx.step("let it begin", async () => (await settle(), null));
      const two = await hire(ctx, high, { priority: Priority.HIGH });
      await ctx.step("let it be asked", async () => (before.resolve(), null));
      return (await ctx.joinAll([one, two])).map(({ output }) => output);
    },
    { subAgents: [low, high] },
  );
  expect((await (await runtime.submit(boss, null, twoSeats)).result()).output).toEqual(["inner", "urgent"]);
});

type Inner = (ctx: RunContext) => Promise<string>;

it.for<{ readonly what: string; readonly low: (inner: Inner) => HostedAgent }>([
  { what: "a step", low: (inner) => agent("low", (ctx) => ctx.step("outer", (step) => inner(step.ctx))) },
  {
    what: "a gate after a call",
    low: (inner) =>
      agent(
        "low",
        async (ctx) => JSON.stringify(await ctx.tool({ callId: "1", toolName: "plain", input: {} })),
        {
          tools: [simpleTool({ name: "plain", execute: async () => text("plain") })],
          callPath: {
            gate: {
              before: async () => ({ decision: "allow" }),
              after: async (call) => text(await inner(call.ctx)),
            },
          },
        },
      ),
  },
])("pauses a victim inside $what that waits to take a step of its own (H2, J7)", async (each) => {
  const { runtime } = await setUp();
  const before = gate();
  const low = each.low(async (ctx) => {
    await before.promise;
    return ctx.step("inner", async () => "inner");
  });
  const high = agent("high", async (ctx) => ctx.step("urgent", async () => "urgent"));
  const boss = agent(
    "boss",
    async (ctx) => {
      const one = await hire(ctx, low, { priority: Priority.LOW });
      await ctx.step("let it begin", async () => (await settle(), null));
      const two = await hire(ctx, high, { priority: Priority.HIGH });
      await ctx.step("let it be asked", async () => (before.resolve(), null));
      return (await ctx.joinAll([one, two])).map(({ output }) => output);
    },
    { subAgents: [low, high] },
  );
  const { output } = await (await runtime.submit(boss, null, twoSeats)).result();
  expect(output).toEqual([expect.stringContaining("inner"), "urgent"]);
});

it("ends a task that returns partial when it is paused, and tells whoever asked (H5)", async () => {
  const { runtime } = await setUp();
  const low = agent("low", async (ctx) => void (await ctx.waitForSignal("never")));
  const high = agent("high", async () => "urgent");
  const boss = agent(
    "boss",
    async (ctx) => {
      const one = await hire(ctx, low, { priority: Priority.LOW, onPause: "return-partial" });
      await ctx.step("let it begin", async () => (await settle(), null));
      await ctx.join(await hire(ctx, high, { priority: Priority.HIGH }));
      return (await ctx.ask(one, null)).kind;
    },
    { subAgents: [low, high] },
  );
  expect((await (await runtime.submit(boss, null, twoSeats)).result()).output).toBe("target_paused");
});

it("cancels everything below, with the reason, and never what is above (C1)", async () => {
  const { runtime } = await setUp();
  const reasons: string[] = [];
  const leaf = agent("leaf", async (ctx) => {
    try {
      await ctx.waitForSignal("never");
    } catch (error) {
      reasons.push((error as Error).message);
      throw error;
    }
  });
  const middle = agent("middle", async (ctx) => void (await ctx.join(await hire(ctx, leaf))), {
    subAgents: [leaf],
  });
  const boss = agent(
    "boss",
    async (ctx) => {
      const handle = await hire(ctx, middle);
      await ctx.step("let it begin", async () => (await settle(), null));
      await ctx.cancel(handle, "enough");
      const { status } = await ctx.join(handle);
      return [status, await ctx.step("boss goes on", async () => "on")];
    },
    { subAgents: [middle] },
  );
  const run = await runtime.submit(boss, null);
  expect((await run.result()).output).toEqual(["cancelled", "on"]);
  expect(reasons).toEqual(["enough"]);
});

it("records a success that arrives after the cancel, and pays for nothing more (C2)", async () => {
  const { runtime, store } = await setUp();
  const answer = gate<string>();
  let second = false;
  const worker = agent("worker", async (ctx) => {
    await ctx.step("first", () => answer.promise);
    await ctx.step("second", async () => (second = true));
  });
  const run = await runtime.submit(worker, null);
  await settle();
  await run.cancel("stop");
  await settle();
  answer.resolve("late");
  const { status, interruptionReason } = await run.result();
  expect({ status, interruptionReason, second }).toEqual({
    status: "cancelled",
    interruptionReason: "stop",
    second: false,
  });
  const values: unknown[] = [];
  for await (const { steps = [] } of store.journal.read(run.runId))
    values.push(...steps.map(({ outcome }) => outcome.kind === "ok" && outcome.value));
  expect(values).toEqual(["late"]);
});

it.each([
  ["wait", "completed"],
  ["cancel", "cancelled"],
  ["detach", "completed"],
] as const)("when a parent ends first, a child with %s ends %s", async (onParentEnd, status) => {
  const { runtime, events, clock } = await setUp();
  const child = agent("child", async (ctx) => ctx.sleepUntil((await ctx.now()) + 1_000));
  const parent = agent("parent", async (ctx) => (await hire(ctx, child, { onParentEnd }), "parent"), {
    subAgents: [child],
  });
  const run = await runtime.submit(parent, null);
  await settle();
  await clock.advance(1_500);
  const { output } = await run.result();
  expect(output).toBe("parent");
  const ends = (await events(run.runId)).filter(({ type }) => type === "task_end");
  const order = ends.map(({ taskId, data }) => `${taskId} ${(data as { status: string }).status}`);
  expect(order.toSorted()).toEqual(["t0 completed", `t1 ${status}`]);
  expect(order[0]).toBe(onParentEnd === "wait" ? "t1 completed" : "t0 completed");
});

it("stops a task at its deadline, but does not count the time it was paused (B5)", async () => {
  const { runtime, clock } = await setUp({ suspendAfterMs: 50 });
  const sleeper = agent("sleeper", async (ctx) => void (await ctx.waitForSignal("go")), {
    budget: { deadlineMs: 1_000 },
  });
  const late = await runtime.submit(sleeper, null);
  await settle();
  await clock.advance(1_600);
  expect((await late.result()).status).toBe("deadline_exceeded");
  const paused = await runtime.submit(sleeper, null);
  await settle();
  await paused.pause();
  await clock.advance(5_000);
  await paused.resume();
  await settle();
  await clock.advance(900);
  await paused.signal("go");
  await clock.advance(50);
  expect((await paused.result()).status).toBe("completed");
});

it("frees the seat of a task whose code crashed for good (H4)", async () => {
  const { runtime } = await setUp({ runRetry: { maxRetries: 0 } });
  const crashing = agent("crashing", () => Promise.reject(new Error("broken")));
  const boss = agent(
    "boss",
    async (ctx) => {
      const first = await ctx.join(await hire(ctx, crashing));
      const second = await ctx.join(await hire(ctx, crashing));
      return [first.failure?.message ?? null, second.status];
    },
    { subAgents: [crashing] },
  );
  expect((await (await runtime.submit(boss, null, twoSeats)).result()).output).toEqual(["broken", "failed"]);
});

it("goes on from a state on an empty journal, under the same seat, with new idempotency keys (J8)", async () => {
  const { runtime } = await setUp();
  const keys: string[] = [];
  const counter = agent("counter", async (ctx) => {
    const count = Number(ctx.input);
    await ctx.step("work", async ({ idempotencyKey }) => keys.push(idempotencyKey));
    return count === 3 ? count : ctx.continueAsNew(count + 1);
  });
  const run = await runtime.submit(counter, 1, { spawnBudget: { maxAgents: 1 } });
  expect((await run.result()).output).toBe(3);
  expect(new Set(keys).size).toBe(3);
});

it("is stopped by a mismatch between code and journal before anything runs (J4)", async () => {
  const { runtime, store, open, clock } = await setUp();
  const model = scriptedModel(["one"]);
  const models = { main: model };
  const first = agent(
    "worker",
    async (ctx) => {
      await ctx.llm({ transcript: Transcript.of([userMessage("one")]) });
      await ctx.waitForSignal("go");
    },
    { models },
  );
  let run = await runtime.submit(first, null);
  await settle();
  await runtime.close();
  await store.leases.dismiss("worker-1");
  let ranOn = false;
  const changed = agent(
    "worker",
    async (ctx) => {
      try {
        await ctx.llm({ transcript: Transcript.of([userMessage("two")]) });
      } catch {
        ranOn = true;
      }
    },
    { models },
  );
  const second = await open();
  second.register(changed);
  run = await foundRun(second, run);
  await clock.advance(1_000);
  const { error: failure } = await run.result();
  expect({ code: failure?.code, ranOn, calls: model.calls.length }).toEqual({
    code: "journal_mismatch",
    ranOn: false,
    calls: 1,
  });
  expect(failure?.message).toContain("step 0");
});

it("gives the next free seat to the paused task that was promoted (H8)", async () => {
  const { runtime, events } = await setUp();
  const first = gate();
  const high = agent("high", async (ctx) => ctx.step("urgent", async () => (await first.promise, null)));
  const idle = agent("idle", async (ctx) => void (await ctx.waitForSignal("go")));
  const boss = agent(
    "boss",
    async (ctx) => {
      const lows = [
        await hire(ctx, idle, { priority: Priority.LOW }),
        await hire(ctx, idle, { priority: Priority.LOW }),
      ];
      await ctx.step("let them wait", async () => (await settle(), null));
      const highs = [
        await hire(ctx, high, { priority: Priority.HIGH }),
        await hire(ctx, high, { priority: Priority.HIGH }),
      ];
      await ctx.joinAll(highs);
      for (const handle of lows) await ctx.cancel(handle, "enough");
      return null;
    },
    { subAgents: [high, idle] },
  );
  const run = await runtime.submit(boss, null, { spawnBudget: { maxAgents: 3, allowPreempt: true } });
  await settle();
  await settle();
  await run.reprioritize("t1", Priority.HIGH);
  await settle();
  first.resolve();
  await run.result();
  const recalled = (await events(run.runId)).filter(({ type }) => type === "seat_recall");
  expect(recalled[0]?.taskId).toBe("t1");
});
