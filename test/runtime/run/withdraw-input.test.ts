import { describe, expect, it } from "vitest";
import { Fault, type HostedAgent } from "../../../src/kernel/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { agent, gate, setUp, settle, until } from "../runtime-setup.ts";
import { findRun } from "../find-run.ts";
import { newPath } from "../stores/sqlite/store-files.ts";

/** Waits for a signal, then returns what is in its queue. */
function lateReader(): HostedAgent {
  return agent("late-reader", async (ctx) => {
    await ctx.waitForSignal("go");
    return [...(await ctx.steering({ mode: "all" }))];
  });
}

describe("withdrawInput()", () => {
  it("withdrawInput() gives the same answer if its caller dies after the command while no worker executes the run", async () => {
    const bench = await setUp({ suspendAfterMs: 0 });
    const run = await bench.runtime.submit(lateReader(), null);
    await until(async () => (await run.summary()).status === "waiting");
    await bench.runtime.close();
    const caller = await bench.open();
    const sent = await findRun(caller, run);
    const inputId = await sent.steer("faster");
    const leave = new AbortController();
    const waiting = sent.withdrawInput(inputId, { signal: leave.signal });
    await until(async () => (await bench.store.mailbox.read(run.runId)).length === 2);
    leave.abort();
    await expect(waiting).rejects.toMatchObject({ code: "cancelled" });
    await caller.close();
    const worker = await bench.open();
    worker.register(lateReader());
    const again = await findRun(worker, run);
    expect(await again.withdrawInput(inputId)).toBe(true);
    await again.signal("go");
    expect((await again.result()).output).toEqual([]);
    expect(await again.withdrawInput(inputId)).toBe(true);
  });

  it("a closed runtime ends the wait for the answer of withdrawInput()", async () => {
    const bench = await setUp({ suspendAfterMs: 0 });
    const run = await bench.runtime.submit(lateReader(), null);
    await until(async () => (await run.summary()).status === "waiting");
    await bench.runtime.close();
    const caller = await bench.open();
    const sent = await findRun(caller, run);
    const waiting = sent.withdrawInput(await sent.steer("faster"));
    const refused = waiting.catch((error: unknown) => error);
    await until(async () => (await bench.store.mailbox.read(run.runId)).length === 2);
    await caller.close();
    expect(await refused).toMatchObject({ code: "closed" });
  });

  it("withdrawInput() withdraws the input of a failed run before the run is resumed", async () => {
    let isBroken = true;
    const worker = agent("worker", async (ctx) => {
      await ctx.waitForSignal("go");
      if (isBroken) throw new Fault("invalid_argument", "no such page");
      return [...(await ctx.steering({ mode: "all" }))];
    });
    const bench = await setUp();
    const run = await bench.runtime.submit(worker, null);
    await settle();
    const [one, two] = [await run.steer("one"), await run.steer("two")];
    await run.signal("go");
    expect((await run.result()).status).toBe("failed");
    expect(await run.withdrawInput(one)).toBe(true);
    expect((await run.queuedInput()).map(({ inputId }) => inputId)).toEqual([two]);
    expect((await run.summary()).status).toBe("failed");
    isBroken = false;
    await run.resume();
    expect((await run.result()).output).toEqual(["two"]);
  });

  it("withdrawInput() comes too late for input that has started the session's next run, and is in time in that next run", async () => {
    const work = gate();
    const bench = await setUp();
    const worker = agent("worker", async (ctx) => {
      if (ctx.input === "one") return void (await ctx.step("work", () => work.promise.then(() => null)));
      await ctx.waitForSignal("go");
      return [ctx.input, ...(await ctx.steering({ mode: "all" }))];
    });
    const run = await bench.runtime.submit(worker, "one");
    await settle();
    const [first, second] = [await run.steer("first"), await run.steer("second")];
    await settle();
    work.resolve();
    await run.result();
    expect(await run.withdrawInput(first)).toBe(false);
    expect(await run.withdrawInput(second)).toBe(false);
    const { runs } = await bench.runtime.list({ sessionId: run.sessionId });
    const next = await findRun(bench.runtime, runs[0] ?? run);
    await until(async () => (await next.queuedInput()).length === 1);
    const [queued] = await next.queuedInput();
    expect(queued?.input).toBe("second");
    expect(await next.withdrawInput(queued?.inputId ?? "")).toBe(true);
    await next.signal("go");
    expect((await next.result()).output).toEqual(["first"]);
  });

  it("a replay keeps the order of inputs after a losing branch gave an input back and the input was withdrawn", async () => {
    const path = await newPath();
    const racer = (): HostedAgent =>
      agent("racer", async (ctx) => {
        await ctx.waitForSignal("start");
        const { value } = await ctx.race({
          reader: async (branch) => {
            const read = await branch.steering();
            await branch.waitForSignal("never");
            return read;
          },
          other: async (branch) => (await branch.waitForSignal("other")) ?? null,
        });
        await ctx.waitForSignal("go");
        return [value, ...(await ctx.steering({ mode: "all" }))];
      });
    const before = await createRuntime({ store: `sqlite:${path}`, suspendAfterMs: 0 });
    const run = await before.submit(racer(), null);
    const inputs = [await run.steer("one"), await run.steer("two"), await run.steer("three")];
    await run.signal("start");
    await until(async () => (await run.queuedInput()).length === 2);
    await run.signal("other", "won");
    expect(await run.withdrawInput(inputs[1] ?? "")).toBe(true);
    await until(async () => (await run.queuedInput()).length === 2);
    expect(await run.withdrawInput(inputs[0] ?? "")).toBe(true);
    await before.close();
    const after = await createRuntime({ store: `sqlite:${path}` });
    after.register(racer());
    const resumed = await findRun(after, run);
    await resumed.signal("go");
    expect((await resumed.result()).output).toEqual(["won", "three"]);
    await after.close();
  });
});
