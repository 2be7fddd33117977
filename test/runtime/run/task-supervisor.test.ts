import { expect, it } from "vitest";
import {
  Priority,
  Transcript,
  userMessage,
  type HostedAgent,
  type RunContext,
} from "../../../src/kernel/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { agent, gate, setUp, settle, simpleTool, spawnTask, text, typesOf, until } from "../runtime-setup.ts";
import { findRun } from "../find-run.ts";

const twoSeats = { spawnBudget: { maxAgents: 2, allowPreempt: true } };

/** With two seats, spawns `low`, lets it start, has `high` preempt it, and returns the outputs of both. */
function preemptingParent(
  low: HostedAgent,
  high: HostedAgent,
  afterSpawn = (): void => undefined,
): HostedAgent {
  return agent(
    "parent",
    async (ctx) => {
      const victim = await spawnTask(ctx, low, { priority: Priority.LOW });
      await ctx.step("let the victim start", async () => (await settle(), null));
      const newTask = await spawnTask(ctx, high, { priority: Priority.HIGH });
      await ctx.step("after both are spawned", async () => (afterSpawn(), null));
      return (await ctx.joinAll([victim, newTask])).map(({ output }) => output);
    },
    { subAgents: [low, high] },
  );
}

it("H4: spawn() returns a refusal that lists the seat holders when all seats are taken", async () => {
  const { runtime } = await setUp();
  const idle = agent("idle", async (ctx) => void (await ctx.waitForSignal("never")));
  const parent = agent(
    "parent",
    async (ctx) => {
      await spawnTask(ctx, idle);
      const refused = await ctx.spawn(idle.id, null);
      return refused.kind === "refused" ? refused.holders.map(({ taskId }) => taskId) : null;
    },
    { subAgents: [idle] },
  );
  expect((await (await runtime.submit(parent, null, twoSeats)).result()).output).toEqual(["t0", "t1"]);
});

it("H2, H5, H7: a HIGH task takes the victim's seat once the victim's calls settle, and the recalled victim repeats none", async () => {
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
  const run = await runtime.submit(preemptingParent(low, high), null, twoSeats);
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

type InnerStep = (ctx: RunContext) => Promise<string>;

it.for<{ readonly place: string; readonly low: (inner: InnerStep) => HostedAgent }>([
  {
    place: "a tool's body",
    low: (inner) =>
      agent(
        "low",
        async (ctx) => JSON.stringify(await ctx.tool({ callId: "1", toolName: "nested", input: {} })),
        {
          tools: [simpleTool({ name: "nested", execute: async (_input, { ctx }) => text(await inner(ctx)) })],
        },
      ),
  },
  {
    place: "a step's body",
    low: (inner) => agent("low", (ctx) => ctx.step("outer", (step) => inner(step.ctx))),
  },
  {
    place: "a gate after a tool call",
    low: (inner) =>
      agent(
        "low",
        async (ctx) => JSON.stringify(await ctx.tool({ callId: "1", toolName: "plain", input: {} })),
        {
          tools: [simpleTool({ name: "plain", execute: async () => text("plain") })],
          callPath: {
            tool: {
              after: [
                {
                  name: "gate",
                  decide: async (call) => ({ decision: "answer", result: text(await inner(call.ctx)) }),
                },
              ],
            },
          },
        },
      ),
  },
])("H2, J7: a victim pauses inside $place before the next inner step", async ({ low: makeLow }) => {
  const { runtime } = await setUp();
  const beforeInner = gate();
  const low = makeLow(async (ctx) => {
    await beforeInner.promise;
    return ctx.step("inner", async () => "inner");
  });
  const high = agent("high", async (ctx) => ctx.step("urgent", async () => "urgent"));
  const parent = preemptingParent(low, high, () => beforeInner.resolve());
  const { output } = await (await runtime.submit(parent, null, twoSeats)).result();
  expect(output).toEqual([expect.stringContaining("inner"), "urgent"]);
});

it("H5: a task with onPause return-partial ends as paused when it is preempted, and ask() returns target_paused", async () => {
  const { runtime } = await setUp();
  const low = agent("low", async (ctx) => void (await ctx.waitForSignal("never")));
  const high = agent("high", async () => "urgent");
  const parent = agent(
    "parent",
    async (ctx) => {
      const one = await spawnTask(ctx, low, { priority: Priority.LOW, onPause: "return-partial" });
      await ctx.step("let the child start", async () => (await settle(), null));
      await ctx.join(await spawnTask(ctx, high, { priority: Priority.HIGH }));
      return (await ctx.ask(one, null)).kind;
    },
    { subAgents: [low, high] },
  );
  expect((await (await runtime.submit(parent, null, twoSeats)).result()).output).toBe("target_paused");
});

it("C1: cancelling a task cancels every task below it with the same reason, and not its parent", async () => {
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
  const middle = agent("middle", async (ctx) => void (await ctx.join(await spawnTask(ctx, leaf))), {
    subAgents: [leaf],
  });
  const parent = agent(
    "parent",
    async (ctx) => {
      const handle = await spawnTask(ctx, middle);
      await ctx.step("let the child start", async () => (await settle(), null));
      await ctx.cancel(handle, "enough");
      const { status } = await ctx.join(handle);
      return [status, await ctx.step("parent continues", async () => "continued")];
    },
    { subAgents: [middle] },
  );
  const run = await runtime.submit(parent, null);
  expect((await run.result()).output).toEqual(["cancelled", "continued"]);
  expect(reasons).toEqual(["enough"]);
});

it("C2: a step that succeeds after the cancellation of its task is recorded, and no further step starts", async () => {
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
] as const)(
  "a child with onParentEnd: %s ends as %s when its parent ends first",
  async (onParentEnd, status) => {
    const { runtime, events, clock } = await setUp();
    const child = agent("child", async (ctx) => ctx.sleepUntil((await ctx.now()) + 1_000));
    const parent = agent("parent", async (ctx) => (await spawnTask(ctx, child, { onParentEnd }), "parent"), {
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
  },
);

it("B5: a task is stopped at its deadline, which does not count the time that the run was paused", async () => {
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

it("H4: a task whose code crashes without a retry frees its seat", async () => {
  const { runtime } = await setUp({ runRetry: { maxRetries: 0 } });
  const crashing = agent("crashing", () => Promise.reject(new Error("broken")));
  const parent = agent(
    "parent",
    async (ctx) => {
      const first = await ctx.join(await spawnTask(ctx, crashing));
      const second = await ctx.join(await spawnTask(ctx, crashing));
      return [first.failure?.message ?? null, second.status];
    },
    { subAgents: [crashing] },
  );
  expect((await (await runtime.submit(parent, null, twoSeats)).result()).output).toEqual([
    "broken",
    "failed",
  ]);
});

it("J8: continueAsNew() restarts the task on an empty journal with the same seat and new idempotency keys", async () => {
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

it("J4: a run whose code no longer matches its journal fails with journal_mismatch before any call", async () => {
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
  let continued = false;
  const changed = agent(
    "worker",
    async (ctx) => {
      try {
        await ctx.llm({ transcript: Transcript.of([userMessage("two")]) });
      } catch {
        continued = true;
      }
    },
    { models },
  );
  const second = await open();
  second.register(changed);
  run = await findRun(second, run);
  await run.signal("go"); // the run waits until it is signalled, and is then executed by the changed code
  await clock.advance(1_000);
  const { error } = await run.result();
  expect({ code: error?.code, continued, calls: model.calls.length }).toEqual({
    code: "journal_mismatch",
    continued: false,
    calls: 1,
  });
  expect(error?.message).toContain("step 0");
});

it("H8: the next free seat goes to the paused task whose priority was raised", async () => {
  const { runtime, events } = await setUp();
  const highMayEnd = gate();
  const high = agent("high", async (ctx) => ctx.step("urgent", async () => (await highMayEnd.promise, null)));
  const idle = agent("idle", async (ctx) => void (await ctx.waitForSignal("go")));
  const parent = agent(
    "parent",
    async (ctx) => {
      const lows = [
        await spawnTask(ctx, idle, { priority: Priority.LOW }),
        await spawnTask(ctx, idle, { priority: Priority.LOW }),
      ];
      await ctx.step("let them wait", async () => (await settle(), null));
      const highs = [
        await spawnTask(ctx, high, { priority: Priority.HIGH }),
        await spawnTask(ctx, high, { priority: Priority.HIGH }),
      ];
      await ctx.joinAll(highs);
      for (const handle of lows) await ctx.cancel(handle, "enough");
      return null;
    },
    { subAgents: [high, idle] },
  );
  const run = await runtime.submit(parent, null, { spawnBudget: { maxAgents: 3, allowPreempt: true } });
  await settle();
  await settle();
  await run.reprioritize("t1", Priority.HIGH);
  await settle();
  highMayEnd.resolve();
  await run.result();
  const recalled = (await events(run.runId)).filter(({ type }) => type === "seat_recall");
  expect(recalled[0]?.taskId).toBe("t1");
});
