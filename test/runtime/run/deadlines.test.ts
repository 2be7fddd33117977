import { describe, expect, it } from "vitest";
import type { Clock, HostedAgent, JsonValue, RunContext, TaskHandle } from "../../../src/kernel/index.ts";
import { FakeClock } from "../../../src/testing/index.ts";
import { agent, setUp, settle, spawnTask, until } from "../runtime-setup.ts";

const budget = { deadlineMs: 1_000 };

/** Ways in which a parent awaits its child. */
const waits: Readonly<Record<string, (ctx: RunContext, child: TaskHandle) => Promise<unknown>>> = {
  join: (ctx, child) => ctx.join(child),
  joinAll: (ctx, child) => ctx.joinAll([child]),
  ask: (ctx, child) => ctx.ask(child, null),
  race: (ctx, child) => ctx.race({ child: (branch) => branch.join(child) }),
};

/** Awaits its child and returns without another step. */
function parentOf(child: HostedAgent, wait: keyof typeof waits): HostedAgent {
  return agent("parent", async (ctx) => (await waits[wait]?.(ctx, await spawnTask(ctx, child)), "returned"), {
    subAgents: [child],
  });
}

/** A clock whose time can pass without a timer, as it does on a busy process. */
class BusyClock extends FakeClock {
  #passedMs = 0;

  override now(): number {
    return super.now() + this.#passedMs;
  }

  pass(ms: number): void {
    this.#passedMs += ms;
  }
}

/** A clock that fires timers that are due at the same time in the reverse order. */
class ReverseClock implements Clock {
  #now = 1_700_000_000_000;
  #timers: { readonly atMs: number; readonly callback: () => void }[] = [];

  now(): number {
    return this.#now;
  }

  schedule(atMs: number, callback: () => void): () => void {
    const timer = { atMs, callback };
    this.#timers.unshift(timer);
    return () => void (this.#timers = this.#timers.filter((each) => each !== timer));
  }

  async advance(ms: number): Promise<void> {
    this.#now += ms;
    for (const timer of this.#timers) {
      if (timer.atMs > this.#now || !this.#timers.includes(timer)) continue;
      this.#timers = this.#timers.filter((each) => each !== timer);
      timer.callback();
      await settle();
    }
  }
}

describe("the deadline of a parent and the end of its child", () => {
  it.each(Object.keys(waits))(
    "B5: a parent in %s() ends as deadline_exceeded when its child notices the common deadline first",
    async (wait) => {
      const clock = new BusyClock();
      const { runtime } = await setUp({ clock });
      const child = agent("child", async (ctx) => {
        await ctx.step("work", async () => (await settle(), clock.pass(1_001), null));
        await ctx.step("work after the deadline", async () => null);
      });
      const run = await runtime.submit(parentOf(child, wait), null, { budget });
      const result = await run.result();
      expect(result).toMatchObject({ status: "deadline_exceeded", output: null });
      await runtime.close();
    },
  );

  it.each(Object.keys(waits))(
    "B5: a parent in %s() ends as deadline_exceeded when its child's timer fires first",
    async (wait) => {
      const clock = new ReverseClock();
      const { runtime } = await setUp({ clock });
      const child = agent("child", (ctx) => ctx.waitForSignal("never"));
      const run = await runtime.submit(parentOf(child, wait), null, { budget });
      await settle();
      await clock.advance(1_001);
      expect((await run.result()).status).toBe("deadline_exceeded");
    },
  );

  it.each(Object.keys(waits))(
    "B5: a parent in %s() ends as deadline_exceeded when its child completes after the deadline",
    async (wait) => {
      const clock = new BusyClock();
      const { runtime } = await setUp({ clock });
      const child = agent("child", (ctx) =>
        ctx.step("work", async () => (await settle(), clock.pass(1_001), "done")),
      );
      const run = await runtime.submit(parentOf(child, wait), null, { budget });
      expect((await run.result()).status).toBe("deadline_exceeded");
    },
  );

  it("B5: the error at a deadline names the limit with its top-ups and the time that was used before the end", async () => {
    const clock = new BusyClock();
    const { runtime } = await setUp({ clock });
    const slow = agent("slow", async (ctx) => {
      await ctx.step("work", async () => (await settle(), clock.pass(3_000), null));
      await ctx.step("more", async () => (await settle(), clock.pass(500), null));
      return "done";
    });
    const run = await runtime.submit(slow, null, { budget });
    const time = { dimension: "deadlineMs", limit: 1_000, used: 3_000 };
    expect((await run.result()).error?.details).toMatchObject({ status: "deadline_exceeded", ...time });
    clock.pass(60_000);
    // It has used more than what a small top-up adds.
    await run.topUp({ deadlineMs: 500 });
    expect((await run.result()).error?.details).toMatchObject({ limit: 1_500, used: 3_000 });
    await run.topUp({ deadlineMs: 1_500 + 501 });
    expect((await run.result()).status).toBe("completed");
  });

  it("B5: a parent continues after the earlier deadline of its child has ended the child", async () => {
    const { runtime, clock } = await setUp();
    const child = agent("child", (ctx) => ctx.waitForSignal("never"), { budget: { deadlineMs: 400 } });
    const parent = agent(
      "parent",
      async (ctx) => (await ctx.join(await spawnTask(ctx, child))).failure?.details?.["status"] ?? null,
      { subAgents: [child] },
    );
    const run = await runtime.submit(parent, null, { budget });
    await settle();
    await clock.advance(500);
    expect(await run.result()).toMatchObject({ status: "completed", output: "deadline_exceeded" });
  });
});

describe("the deadline of a child that waits for a seat", () => {
  const holder = agent("holder", (ctx) => ctx.waitForSignal("leave"));
  const waiting = agent("waiting", (ctx) => ctx.waitForSignal("never"), { budget });
  /** A parent that returns how long its waiting child lived, and how the child ended. */
  const parent = agent(
    "parent",
    async (ctx): Promise<JsonValue> => {
      await spawnTask(ctx, holder);
      const from = await ctx.now();
      const { failure } = await ctx.join(await spawnTask(ctx, waiting, { onFull: "wait" }));
      return { status: failure?.details?.["status"] ?? null, ms: (await ctx.now()) - from };
    },
    { subAgents: [holder, waiting] },
  );
  const twoSeats = { spawnBudget: { maxAgents: 2 } };

  it("B5: a child that waits for a seat ends at its deadline, counted from the creation of its task", async () => {
    const { runtime, clock, events } = await setUp();
    const run = await runtime.submit(parent, null, twoSeats);
    await settle();
    await clock.advance(2_000);
    expect((await run.result()).output).toEqual({ status: "deadline_exceeded", ms: 1_001 });
    expect((await events(run.runId)).map(({ type }) => type)).not.toContain("seat_grant");
  });

  it("B5: a child that waits for a seat ends at its deadline when another worker executes the run by then", async () => {
    const { runtime, clock, open, store } = await setUp({ suspendAfterMs: 50, pollMs: 10 });
    const run = await runtime.submit(parent, null, twoSeats);
    await settle();
    // The run is suspended, and the next worker has to find the deadline of the pending task in the journal.
    await clock.advance(100);
    expect((await store.journal.list()).runs[0]?.endedAt).toBeNull();
    const other = await open();
    other.register(parent);
    await clock.advance(2_000);
    expect(await run.result()).toMatchObject({
      status: "completed",
      output: { status: "deadline_exceeded", ms: 1_001 },
    });
  });

  it("B5: the time in which a child has waited for a seat counts towards its deadline", async () => {
    const { runtime, clock, events } = await setUp();
    const run = await runtime.submit(parent, null, twoSeats);
    await settle();
    await clock.advance(600);
    await run.signal("leave", null, "t1");
    await until(async () => (await events(run.runId)).some(({ type }) => type === "seat_grant"));
    await clock.advance(600);
    expect((await run.result()).output).toEqual({ status: "deadline_exceeded", ms: 1_001 });
  });
});

describe("a top-up of time", () => {
  const child = agent("child", (ctx) => ctx.waitForSignal("go"));
  const parent = agent(
    "parent",
    async (ctx) => (await ctx.join(await spawnTask(ctx, child))).output ?? "cancelled",
    { subAgents: [child] },
  );
  const open = { suspendAfterMs: 50, pollMs: 10 };

  it("B5: a top-up of time moves the deadlines of a run in progress and of its children, also for the next worker", async () => {
    const bench = await setUp(open);
    const { runtime, clock, store } = bench;
    const run = await runtime.submit(parent, null, { budget });
    await settle();
    await run.topUp({ deadlineMs: 1_000 });
    await until(async () => (await store.mailbox.read(run.runId)).length === 0);
    await clock.advance(100);
    const other = await bench.open();
    other.register(parent);
    await clock.advance(1_500);
    await run.signal("go", "in time", "t1");
    await until(async () => (await clock.advance(20), (await run.summary()).endedAt !== null));
    expect(await run.result()).toMatchObject({ status: "completed", output: "in time" });
  });

  it("B5: a top-up of time restarts a run that stopped at its deadline, with the children that it awaited", async () => {
    const { runtime, clock } = await setUp();
    const run = await runtime.submit(parent, null, { budget });
    await settle();
    await clock.advance(1_001);
    expect((await run.result()).status).toBe("deadline_exceeded");
    await run.topUp({ maxTurns: 5 });
    await clock.advance(60_000);
    expect((await run.result()).status).toBe("deadline_exceeded");
    await run.topUp({ deadlineMs: 500 });
    await until(async () => (await run.summary()).endedAt === null);
    await clock.advance(400);
    await run.signal("go", "in time", "t1");
    await until(async () => (await run.summary()).endedAt !== null);
    expect(await run.result()).toMatchObject({ status: "completed", output: "in time" });
  });
});
