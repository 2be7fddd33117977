import { expect, it } from "vitest";
import { FakeClock } from "../../../src/testing/index.ts";
import { agent, setUp, until } from "../runtime-setup.ts";

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
