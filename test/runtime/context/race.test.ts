import { expect, it } from "vitest";
import type { JsonValue, RunContext } from "../../../src/kernel/index.ts";
import { findRun } from "../find-run.ts";
import { agent, setUp, settle } from "../runtime-setup.ts";

/** A race whose branch `slow` takes signals `news` and loses to `fast`, which takes the signal `go`. */
async function lostNews(ctx: RunContext, count: number): Promise<string> {
  const { winner } = await ctx.race<JsonValue>({
    slow: async (branch) => {
      for (let taken = 0; taken < count; taken++) await branch.waitForSignal("news");
      return (await branch.waitForSignal("never")) ?? null;
    },
    fast: async (branch) => (await branch.waitForSignal("go")) ?? null,
  });
  return winner;
}

it("W1: signals that a losing branch of ctx.race took are received by the next waits, in order", async () => {
  const { runtime } = await setUp();
  const received: unknown[] = [];
  const worker = agent("worker", async (ctx) => {
    received.push(await lostNews(ctx, 2));
    for (let wait = 0; wait < 3; wait++) received.push(await ctx.waitForSignal("news"));
  });
  const run = await runtime.submit(worker, null);
  await settle();
  for (const value of [1, 2, 3]) await run.signal("news", value);
  await settle();
  await run.signal("go");
  await run.result();
  expect(received).toEqual(["fast", 1, 2, 3]);
});

it("W1: a signal that the winning branch of ctx.race took is consumed", async () => {
  const { runtime } = await setUp();
  const worker = agent("worker", async (ctx) => {
    const { value } = await ctx.race<JsonValue>({
      a: async (branch) => (await branch.waitForSignal("news")) ?? null,
      b: async (branch) => (await branch.waitForSignal("never")) ?? null,
    });
    return [value, (await ctx.waitForSignal("news", { timeoutMs: 0 })) ?? null];
  });
  const run = await runtime.submit(worker, null);
  await settle();
  await run.signal("news", 1);
  expect((await run.result()).output).toEqual([1, null]);
});

it("W1: a signal of a losing branch is available after a restart, before and after the race ended", async () => {
  for (const closesBeforeEnd of [true, false]) {
    const { runtime, store, open } = await setUp();
    const worker = () =>
      agent("worker", async (ctx) => {
        const winner = await lostNews(ctx, 1);
        await ctx.waitForSignal("proceed");
        return [winner, (await ctx.waitForSignal("news", { timeoutMs: 1_000 })) ?? null];
      });
    let run = await runtime.submit(worker(), null);
    await settle();
    await run.signal("news", 1);
    await settle();
    if (!closesBeforeEnd) await run.signal("go");
    await settle();
    await runtime.close();
    await store.leases.dismiss("worker-1");
    const next = await open();
    next.register(worker());
    run = await findRun(next, run);
    if (closesBeforeEnd) await run.signal("go");
    await run.signal("proceed");
    expect((await run.result()).output).toEqual(["fast", 1]);
  }
});
