import { expect, it } from "vitest";
import type { JsonValue, RunContext } from "../../../src/kernel/index.ts";
import { agent, setUp, settle, until } from "../runtime-setup.ts";
import { findRun } from "../find-run.ts";

/** A resource that is open while the run is in memory. */
function holdOpen(ctx: RunContext, log: string[]): Promise<number> {
  return ctx.resource(
    async () => log.push("open"),
    async () => void log.push("close"),
  );
}

it("a task of a run that only waits is removed from memory: its resources are closed, and a message resumes it", async () => {
  const { runtime, clock } = await setUp({ suspendAfterMs: 100 });
  const log: string[] = [];
  const worker = agent("worker", async (ctx) => {
    await holdOpen(ctx, log);
    try {
      await ctx.step("paid", async () => log.push("paid"));
      return (await ctx.waitForSignal("go")) ?? null;
    } catch (error) {
      log.push("catch");
      throw error;
    } finally {
      log.push("finally");
    }
  });
  const run = await runtime.submit(worker, null);
  await settle();
  expect(log).toEqual(["open", "paid"]);
  await clock.advance(101);
  expect(log).toEqual(["open", "paid", "close"]);
  await run.signal("go", 7);
  expect((await run.result()).output).toBe(7);
  expect(log).toEqual(["open", "paid", "close", "open", "finally", "close"]);
});

it("a run that only waits after a race is removed from memory once the call of the losing branch has been cancelled", async () => {
  const { runtime, clock } = await setUp({ suspendAfterMs: 100 });
  const log: string[] = [];
  const worker = agent("worker", async (ctx) => {
    await holdOpen(ctx, log);
    await ctx.race<JsonValue>({
      quick: (branch) => branch.step("quick", async () => 1),
      slow: (branch) =>
        branch.step(
          "slow",
          ({ signal }) =>
            new Promise((_resolve, reject) => {
              signal.addEventListener("abort", () => reject(new Error("stopped")), { once: true });
            }),
        ),
    });
    return (await ctx.waitForSignal("go")) ?? null;
  });
  const run = await runtime.submit(worker, null);
  await settle();
  await clock.advance(101);
  expect(log).toEqual(["open", "close"]);
  await run.signal("go", 7);
  expect((await run.result()).output).toBe(7);
});

it("a step of a task that was removed from memory is not executed, even if a promise continues the code of the task", async () => {
  const { runtime, clock } = await setUp({ suspendAfterMs: 100 });
  const stray = Promise.withResolvers<void>();
  let lives = 0;
  const ran: string[] = [];
  const worker = agent("worker", async (ctx) => {
    const life = ++lives;
    await ctx.parallel({
      waits: (branch) => branch.waitForSignal("go"),
      strays: async (branch) => {
        if (life === 1) await stray.promise;
        await branch.step("after", async () => ran.push(`life ${life}`));
        ran.push(`went on ${life}`);
      },
    });
  });
  const run = await runtime.submit(worker, null);
  await settle();
  await clock.advance(101);
  stray.resolve();
  await settle();
  expect(ran).toEqual([]);
  await run.signal("go");
  await run.result();
  expect(ran).toEqual(["life 2", "went on 2"]);
});

it("a sleeping task wakes at its time, also on another worker after a restart", async () => {
  const { runtime, clock, store, open } = await setUp({ suspendAfterMs: 100 });
  const woken: number[] = [];
  const sleeper = () =>
    agent("sleeper", async (ctx) => {
      const from = await ctx.now();
      await ctx.sleepUntil(from + 60_000);
      woken.push(clock.now() - from);
    });
  let run = await runtime.submit(sleeper(), null);
  await settle();
  await clock.advance(30_000);
  await runtime.close();
  await store.leases.dismiss("worker-1");
  const next = await open();
  next.register(sleeper());
  run = await findRun(next, run);
  await clock.advance(29_000);
  expect(woken).toEqual([]);
  await clock.advance(2_000);
  await run.result();
  expect(woken[0]).toBeGreaterThanOrEqual(60_000);
  expect(woken[0]).toBeLessThan(61_000);
});

it("sleepUntil() ends at the time that was given at its first call, also if a replay passes a later time", async () => {
  const { runtime, clock } = await setUp({ suspendAfterMs: 100 });
  const woken: number[] = [];
  const sleeper = agent("sleeper", async (ctx) => {
    await ctx.sleepUntil(clock.now() + 60_000);
    woken.push(clock.now());
  });
  const startedAt = clock.now();
  const run = await runtime.submit(sleeper, null);
  await settle();
  await clock.advance(60_000);
  await run.result();
  expect(woken).toEqual([startedAt + 60_000]);
});

it("sleep() waits for its duration once, also if the run is suspended meanwhile", async () => {
  const { runtime, clock } = await setUp({ suspendAfterMs: 100 });
  const woken: number[] = [];
  const sleeper = agent("sleeper", async (ctx) => {
    for (let nap = 0; nap < 2; nap++) await ctx.sleep(30_000);
    woken.push(clock.now());
  });
  const startedAt = clock.now();
  const run = await runtime.submit(sleeper, null);
  await settle();
  await clock.advance(30_000);
  await clock.advance(30_000);
  await run.result();
  expect(woken).toEqual([startedAt + 60_000]);
});

it("a suspended run wakes when its time is due, not at the next poll of the worker", async () => {
  const { runtime, clock, store, open } = await setUp({ suspendAfterMs: 100, pollMs: 3_600_000 });
  const woken: number[] = [];
  const sleeper = agent("sleeper", async (ctx) => {
    await ctx.sleep(60_000);
    woken.push(clock.now());
  });
  const startedAt = clock.now();
  let run = await runtime.submit(sleeper, null);
  await settle();
  await clock.advance(60_000);
  await run.result();
  expect(woken).toEqual([startedAt + 60_000]);
  run = await runtime.submit(sleeper, null);
  await settle();
  await clock.advance(10_000);
  await runtime.close();
  await store.leases.dismiss("worker-1");
  const next = await open();
  next.register(sleeper);
  run = await findRun(next, run);
  await clock.advance(50_000);
  await run.result();
  expect(woken[1]).toBe(startedAt + 120_000);
});

it("a restart does not extend the timeout of a wait", async () => {
  const { runtime, clock } = await setUp({ suspendAfterMs: 100 });
  const worker = agent(
    "worker",
    async (ctx) => (await ctx.waitForSignal("never", { timeoutMs: 1_000 })) ?? "late",
  );
  const run = await runtime.submit(worker, null);
  await settle();
  await clock.advance(500);
  await run.signal("other");
  await settle();
  await clock.advance(1_000);
  let output: unknown;
  void run.result().then((result) => (output = result.output));
  await until(() => output !== undefined);
  expect(output).toBe("late");
});
