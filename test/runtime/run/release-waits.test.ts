import { expect, it } from "vitest";
import { FakeClock } from "../../../src/testing/index.ts";
import { agent, settle, setUp, until } from "../runtime-setup.ts";

/** A clock that fires a due timer before the event loop takes its next turn, as a busy process does. */
class HastyClock extends FakeClock {
  override schedule(atMs: number, callback: () => void): () => void {
    if (atMs > this.now()) return super.schedule(atMs, callback);
    let isCancelled = false;
    const fire = async (): Promise<void> => {
      for (let count = 0; count < 50; count++) await Promise.resolve();
      if (!isCancelled) callback();
    };
    void fire();
    return () => void (isCancelled = true);
  }
}

it("a run that is released at once records what it waits for, also if the timer fires before the wait is noted", async () => {
  const { runtime } = await setUp({ clock: new HastyClock(), suspendAfterMs: 0 });
  const clerk = agent("clerk", async (ctx) => (await ctx.waitForSignal("go")) ?? null);
  const run = await runtime.submit(clerk, null);
  await run.signal("other", 2);
  await until(async () => (await run.summary()).status === "waiting");
  expect((await run.summary()).waitsFor).toEqual(["signal"]);
  await run.signal("go", 1);
  expect((await run.result()).output).toBe(1);
});

it("a run that continues while its release is written keeps what its code added and wakes at its new time", async () => {
  const { clock, runtime, store } = await setUp({ suspendAfterMs: 0 });
  const append = store.journal.append.bind(store.journal);
  const [held, open] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  store.journal.append = async (lease, commit, submissions) => {
    const suspends = commit.events?.some(({ type }) => type === "task_suspend") ?? false;
    const stored = await append(lease, commit, submissions);
    if (suspends) {
      held.resolve();
      await open.promise;
    }
    return stored;
  };
  let sleeping = 0;
  const clerk = agent("clerk", async (ctx) => {
    await ctx.waitForSignal("go");
    sleeping++;
    return (await ctx.waitForSignal("answer", { timeoutMs: 1000 })) ?? "awake";
  });
  const run = await runtime.submit(clerk, null);
  await clock.advance(1);
  await held.promise;
  // The timer releases the run, and the mail arrives while the commit of the release is still written.
  await clock.advance(1);
  await run.signal("go", 1);
  await until(() => sleeping === 1);
  await settle();
  open.resolve();
  await until(async () => (await run.summary()).waitsFor.includes("time"));
  await clock.advance(2000);
  expect((await run.result()).output).toBe("awake");
});
