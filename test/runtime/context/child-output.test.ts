import { describe, expect, it } from "vitest";
import type {
  HostedAgent,
  CancellationError,
  Clock,
  RunContext,
  TaskHandle,
} from "../../../src/kernel/index.ts";
import { FakeClock } from "../../../src/testing/index.ts";
import { agent, gate, setUp, settle, type Bench } from "../runtime-setup.ts";

const never = (): Promise<never> => new Promise(() => {});

async function cancelled({ runtime }: Pick<Bench, "runtime">, worker: HostedAgent) {
  const run = await runtime.submit(worker, null);
  await settle();
  await run.cancel("enough");
  await settle();
  return run;
}

describe("a cancelled task that waits for a child", () => {
  const children = {
    "that ends at once": [0, (ctx: RunContext) => ctx.waitForSignal("go")],
    "whose call ignores it": [100, (ctx: RunContext) => ctx.step("wait", never)],
    "whose code ignores it": [100, never],
  } as const;

  it.each(Object.entries(children))(
    "C1, B5: a cancelled task that waits for a child ends with the partial text of one %s",
    async (_what, [graceMs, code]) => {
      const child = agent("child", async (ctx) => {
        ctx.report({ output: "so far" });
        await code(ctx);
      });
      const { runtime, clock } = await setUp({ stopGraceMs: 100 });
      const heard: unknown[] = [];
      const parent = agent(
        "parent",
        async (ctx) => {
          const spawned = await ctx.spawn(child.id, null);
          if (spawned.kind === "refused") return;
          try {
            await ctx.join(spawned.handle);
          } catch (error) {
            heard.push((error as CancellationError).childOutput);
            throw error;
          }
        },
        { subAgents: [child] },
      );
      const run = await cancelled({ runtime }, parent);
      await clock.advance(graceMs);
      expect(await run.result()).toMatchObject({ status: "cancelled", output: null });
      expect(heard).toEqual(["so far"]);
    },
  );

  it("a cancelled task ends without the output of a child whose code is abandoned, after that code has reported", async () => {
    const child = agent("child", async (ctx) => {
      await ctx.step("wait", never).catch(never);
    });
    const { runtime, clock } = await setUp({ stopGraceMs: 100 });
    const heard: unknown[] = [];
    const parent = agent(
      "parent",
      async (ctx) => {
        const spawned = await ctx.spawn(child.id, null);
        if (spawned.kind === "spawned") await ctx.join(spawned.handle).finally(() => heard.push("left"));
      },
      { subAgents: [child] },
    );
    const run = await cancelled({ runtime }, parent);
    await clock.advance(100);
    expect(heard).toEqual([]);
    await clock.advance(100);
    expect(await run.result()).toMatchObject({ status: "cancelled" });
    expect(heard).toEqual(["left"]);
  });

  it("a cancelled task that waits for a child does not wait for a child that was not cancelled", async () => {
    const other = agent("other", (ctx) => ctx.waitForSignal("go"));
    const joiner = agent("joiner", async (ctx) => {
      await ctx.join(ctx.input as unknown as TaskHandle);
    });
    const { runtime } = await setUp({ stopGraceMs: 100 });
    const parent = agent(
      "parent",
      async (ctx) => {
        const theirs = await ctx.spawn(other.id, null);
        if (theirs.kind === "refused") return null;
        const own = await ctx.spawn(joiner.id, { ...theirs.handle });
        if (own.kind === "refused") return null;
        await ctx.waitForSignal("enough");
        await ctx.cancel(own.handle, "not needed");
        return (await ctx.join(own.handle)).status;
      },
      { subAgents: [other, joiner] },
    );
    const run = await runtime.submit(parent, null);
    await settle();
    await run.signal("enough");
    // The fake clock does not move here.
    expect((await run.result()).output).toBe("cancelled");
  });

  it("a cancelled task that waits for a child does not wait past its deadline for a child that was not cancelled", async () => {
    const clock = new FakeClock();
    let passed = 0;
    // The time passes without a timer.
    const late: Clock = {
      now: () => clock.now() + passed,
      schedule: (atMs, callback) => clock.schedule(atMs, callback),
    };
    const { runtime } = await setUp({ clock: late, stopGraceMs: 100 });
    const child = agent("child", (ctx) => ctx.waitForSignal("go"));
    const parent = agent(
      "parent",
      async (ctx) => {
        const spawned = await ctx.spawn(child.id, null);
        // The parent waits at this point.
        await settle();
        passed = 1_500;
        if (spawned.kind === "spawned") await ctx.join(spawned.handle);
      },
      { subAgents: [child] },
    );
    const run = await runtime.submit(parent, null, { budget: { deadlineMs: 1_000 } });
    expect(await run.result()).toMatchObject({ status: "deadline_exceeded" });
  });

  it("a cancelled task that waits for a child receives the output of a child that ended before", async () => {
    const child = agent("child", async () => "done");
    const { runtime } = await setUp({ stopGraceMs: 100 });
    const heard: unknown[] = [];
    const parent = agent(
      "parent",
      async (ctx) => {
        const spawned = await ctx.spawn(child.id, null);
        if (spawned.kind === "refused") return;
        await ctx.waitForSignal("go").catch(() => undefined);
        await ctx
          .join(spawned.handle)
          .catch((error: unknown) => heard.push((error as CancellationError).childOutput));
      },
      { subAgents: [child] },
    );
    const run = await cancelled({ runtime }, parent);
    expect(await run.result()).toMatchObject({ status: "cancelled" });
    expect(heard).toEqual(["done"]);
  });

  it("a cancelled task that waits for a child does not settle this wait if another branch has won the race", async () => {
    const child = agent("child", (ctx) => ctx.step("wait", never));
    const { runtime, clock } = await setUp({ stopGraceMs: 100 });
    const seen: string[] = [];
    const left = gate();
    const parent = agent(
      "parent",
      async (ctx) => {
        const spawned = await ctx.spawn(child.id, null);
        if (spawned.kind === "refused") return;
        const patient = (own: RunContext) => own.join(spawned.handle).finally(() => seen.push("went on"));
        const hasty = (own: RunContext) => own.waitForSignal("go").finally(() => seen.push("left"));
        await ctx.race<unknown>({ patient, hasty }).catch(() => left.promise);
      },
      { subAgents: [child] },
    );
    const run = await cancelled({ runtime }, parent);
    await clock.advance(100);
    await settle();
    left.resolve();
    expect(await run.result()).toMatchObject({ status: "cancelled" });
    expect(seen).toEqual(["left"]);
  });

  it("a cancelled task that waits for a child has no call in flight after it received the child's output", async () => {
    const child = agent("child", (ctx) => ctx.waitForSignal("go"));
    const { runtime, clock } = await setUp({ stopGraceMs: 100 });
    const parent = agent(
      "parent",
      async (ctx) => {
        const spawned = await ctx.spawn(child.id, null);
        if (spawned.kind === "spawned") await ctx.join(spawned.handle).catch(never);
      },
      { subAgents: [child] },
    );
    const run = await cancelled({ runtime }, parent);
    // No call has to be abandoned first, so there is no second grace period.
    await clock.advance(100);
    expect(await run.result()).toMatchObject({ status: "cancelled" });
  });
});
