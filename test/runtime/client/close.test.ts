import { describe, expect, test } from "vitest";
import {
  Fault,
  formatRunId,
  type HostedAgent,
  type RunHandle,
  type Runtime,
} from "../../../src/kernel/index.ts";
import { createRuntime } from "../../../src/runtime/create-runtime.ts";
import { agent, settle, until } from "../runtime-setup.ts";
import { removeStoresAfterEach, twoStores } from "../two-stores.ts";

removeStoresAfterEach();

const closed = { code: "closed", message: expect.stringContaining("the runtime was closed") };

function patient(): HostedAgent {
  return agent("patient", async (ctx) => (await ctx.waitForSignal("go")) ?? null);
}

async function typesIn(run: RunHandle, seen: string[]): Promise<void> {
  for await (const event of run.events()) seen.push(event.type);
}

describe.each(twoStores)("closing a runtime on %s", (_name, prepare) => {
  const opened = async (): Promise<{ readonly runtime: Runtime; readonly run: RunHandle }> => {
    const open = await prepare();
    const runtime = await createRuntime({ store: await open(), closeGraceMs: 0 });
    return { runtime, run: await runtime.submit(patient(), null) };
  };

  test("fails whoever waits for a run of it, and shows no end that did not come", async () => {
    const { runtime, run } = await opened();
    const seen: string[] = [];
    const waiters = [run.result(), typesIn(run, seen)];
    const outcomes = Promise.allSettled(waiters);
    await until(() => seen.includes("task_suspend"));
    await runtime.close();
    for (const outcome of await outcomes)
      expect(outcome).toMatchObject({ status: "rejected", reason: closed });
    expect(seen).not.toContain("run_end");
  });

  test("fails whoever waits for an order that nobody obeys any more", async () => {
    const open = await prepare();
    const runtime = await createRuntime({ store: await open(), closeGraceMs: 0 });
    const clerk = agent("clerk", () => Promise.reject(new Fault("unsupported", "never")));
    const run = await runtime.submit(clerk, null);
    await run.result();
    const store = await open();
    const other = await createRuntime({ store });
    await runtime.close();
    // Where its agent is not registered, the order stays.
    const handle = await other.find(run.runId);
    await handle?.resume();
    const outcomes = Promise.allSettled([handle?.result()]);
    await settle();
    await other.close();
    expect(await outcomes).toMatchObject([{ status: "rejected", reason: closed }]);
  });

  test("refuses whatever is asked of it, or of a run through it, afterwards", async () => {
    const { runtime, run } = await opened();
    await runtime.close();
    const asked: readonly (() => Promise<unknown>)[] = [
      () => runtime.submit(patient(), null),
      () => runtime.find(run.runId),
      () => runtime.find(formatRunId("nobody")),
      () => runtime.list(),
      () => runtime.collect({ endedBefore: 0 }),
      () => run.result(),
      () => typesIn(run, []),
      () => run.cancel(),
      () => run.signal("go"),
      () => run.snapshot(),
      () => run.fork({ at: 0 }),
    ];
    for (const ask of asked) await expect(ask()).rejects.toMatchObject(closed);
    await runtime.close();
  });

  test("lets a reader who is behind see the end that has come", async () => {
    const { runtime, run } = await opened();
    const events = run.events()[Symbol.asyncIterator]();
    await events.next();
    await run.signal("go", 1);
    await run.result();
    await runtime.close();
    const seen: string[] = [];
    for (let next = await events.next(); next.done !== true; next = await events.next())
      seen.push(next.value.type);
    expect(seen.at(-1)).toBe("run_end");
    expect(await events.next()).toEqual({ done: true, value: undefined });
  });
});
