import { describe, expect, test } from "vitest";
import {
  Fault,
  formatRunId,
  type HostedAgent,
  type RunHandle,
  type Runtime,
} from "../../../src/kernel/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { FakeClock } from "../../../src/testing/index.ts";
import { agent, settle, until } from "../runtime-setup.ts";
import { removeStoresAfterEach, twoStores } from "../two-stores.ts";

removeStoresAfterEach();

const closed = { code: "closed", message: expect.stringContaining("the runtime was closed") };

function waitingAgent(): HostedAgent {
  return agent("waiting", async (ctx) => (await ctx.waitForSignal("go")) ?? null);
}

async function collectTypes(run: RunHandle, types: string[]): Promise<void> {
  for await (const event of run.events()) types.push(event.type);
}

describe.each(twoStores)("close() of a runtime on %s", (_name, prepare) => {
  const openWithRun = async (): Promise<{ readonly runtime: Runtime; readonly run: RunHandle }> => {
    const open = await prepare();
    const runtime = await createRuntime({ store: await open(), closeGraceMs: 0 });
    return { runtime, run: await runtime.submit(waitingAgent(), null) };
  };

  test("close() rejects pending result() and events() with closed, without a run_end event", async () => {
    const { runtime, run } = await openWithRun();
    const types: string[] = [];
    const outcomes = Promise.allSettled([run.result(), collectTypes(run, types)]);
    await until(() => types.includes("task_suspend"));
    await runtime.close();
    for (const outcome of await outcomes)
      expect(outcome).toMatchObject({ status: "rejected", reason: closed });
    expect(types).not.toContain("run_end");
  });

  test("close() rejects result() with closed while a resume command waits for an owner", async () => {
    const open = await prepare();
    const runtime = await createRuntime({ store: await open(), closeGraceMs: 0 });
    const clerk = agent("clerk", () => Promise.reject(new Fault("unsupported", "always fails")));
    const run = await runtime.submit(clerk, null);
    await run.result();
    const store = await open();
    const other = await createRuntime({ store });
    await runtime.close();
    // The agent is not registered with this runtime, so that the command is not handled.
    const handle = await other.find(run.runId);
    await handle?.resume();
    const outcomes = Promise.allSettled([handle?.result()]);
    await settle();
    await other.close();
    expect(await outcomes).toMatchObject([{ status: "rejected", reason: closed }]);
  });

  test("close() makes every later method of the runtime and its handles fail with closed", async () => {
    const { runtime, run } = await openWithRun();
    await runtime.close();
    const calls: readonly (() => Promise<unknown>)[] = [
      () => runtime.submit(waitingAgent(), null),
      () => runtime.find(run.runId),
      () => runtime.find(formatRunId("unknown")),
      () => runtime.list(),
      () => runtime.collect({ endedBefore: 0 }),
      () => run.result(),
      () => collectTypes(run, []),
      () => run.cancel(),
      () => run.signal("go"),
      () => run.snapshot(),
      () => run.fork({ at: 0 }),
    ];
    for (const call of calls) await expect(call()).rejects.toMatchObject(closed);
    await runtime.close();
  });

  test("a runtime that is declared with `await using` is closed at the end of its block", async () => {
    let handle: RunHandle | undefined;
    {
      const { runtime: opened, run } = await openWithRun();
      await using runtime = opened;
      handle = run;
      expect((await runtime.list()).runs).toHaveLength(1);
    }
    await expect(handle.result()).rejects.toMatchObject(closed);
  });

  test("K1: close() of a runtime leaves a waiting run with the status waiting, and the next runtime resumes it when answered", async () => {
    const open = await prepare();
    const first = await createRuntime({ store: await open(), closeGraceMs: 0 });
    const { runId } = await first.submit(waitingAgent(), null);
    await until(async () => (await first.list({ status: "waiting" })).runs.length === 1);
    await first.close();

    await using second = await createRuntime({ store: await open() });
    expect((await second.list({ status: "waiting" })).runs).toMatchObject([{ runId, waitsFor: ["signal"] }]);
    const run = await second.find(runId);
    await run?.signal("go", 7);
    second.register(waitingAgent());
    expect(await run?.result()).toMatchObject({ status: "completed", output: 7 });
  });

  test("L2: close() of a runtime leaves a run that waits for a time to the runtime that is open at that time", async () => {
    const open = await prepare();
    const clock = new FakeClock();
    const sleeper = agent("sleeper", (ctx) => ctx.sleep(60_000));
    const first = await createRuntime({ store: await open(), clock, closeGraceMs: 0 });
    const { runId } = await first.submit(sleeper, null);
    await until(async () => (await first.list({ status: "waiting" })).runs.length === 1);
    await first.close();

    await using second = await createRuntime({ store: await open(), clock, pollMs: 1_000 });
    second.register(sleeper);
    expect((await second.list({ status: "waiting" })).runs).toMatchObject([{ runId, waitsFor: ["time"] }]);
    const result = (await second.find(runId))?.result();
    await clock.advance(60_000);
    expect(await result).toMatchObject({ status: "completed" });
  });

  test("close() leaves a run whose task works as pending, so that the next runtime continues it", async () => {
    const open = await prepare();
    const first = await createRuntime({ store: await open(), closeGraceMs: 0 });
    const { runId } = await first.submit(
      agent("busy", () => new Promise<never>(() => undefined)),
      null,
    );
    await until(async () => (await first.list({ status: "running" })).runs.length === 1);
    await first.close();

    await using second = await createRuntime({ store: await open() });
    expect((await second.list()).runs).toMatchObject([{ runId, status: "pending", waitsFor: ["worker"] }]);
  });

  test("close() lets a reader that is behind read the remaining events of an ended run", async () => {
    const { runtime, run } = await openWithRun();
    const events = run.events()[Symbol.asyncIterator]();
    await events.next();
    await run.signal("go", 1);
    await run.result();
    await runtime.close();
    const types: string[] = [];
    for (let next = await events.next(); next.done !== true; next = await events.next())
      types.push(next.value.type);
    expect(types.at(-1)).toBe("run_end");
    expect(await events.next()).toEqual({ done: true, value: undefined });
  });
});
