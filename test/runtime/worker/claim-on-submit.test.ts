import { expect, it, vi } from "vitest";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { agent } from "../runtime-setup.ts";
import { removeStoresAfterEach, twoStores } from "../two-stores.ts";

removeStoresAfterEach();

const worker = agent("worker", async (ctx) => ctx.step("work", async () => "done"));

it.each(twoStores)(
  "%s: a run submitted while its runtime closes is executed by the next runtime on the store",
  async (_name, prepare) => {
    const open = await prepare();
    const errors: string[] = [];
    const one = await createRuntime({ store: await open(), onError: ({ message }) => errors.push(message) });
    one.register(worker);
    const submitting = one.submit(worker, null);
    const closing = one.close();
    const { runId } = await submitting;
    await closing;
    expect(errors).toEqual([]);
    const two = await createRuntime({ store: await open() });
    two.register(worker);
    const run = await two.find(runId);
    expect((await run?.result())?.output).toBe("done");
    await two.close();
  },
);

it.each(twoStores)(
  "%s: all runs end when more are submitted at once than a worker claims ahead",
  async (_name, prepare) => {
    const store = await (await prepare())();
    const runtime = await createRuntime({ store, concurrency: 1 });
    const runs = await Promise.all(Array.from({ length: 40 }, () => runtime.submit(worker, null)));
    const results = await Promise.all(runs.map((run) => run.result()));
    expect(results.every(({ output }) => output === "done")).toBe(true);
    await runtime.close();
  },
);

it("SQLite: submission claims a run and its last commit releases it, without separate writes for the lease", async () => {
  const [, prepare] = twoStores.find(([name]) => name === "sqlite") ?? [];
  const open = await prepare?.();
  const store = await open?.();
  if (store === undefined) throw new Error("there is no SQLite store to test");
  const claim = vi.spyOn(store.leases, "claim");
  const release = vi.spyOn(store.leases, "release");
  const runtime = await createRuntime({ store, pollMs: 100_000 });
  runtime.register(worker);
  await new Promise((resolve) => setImmediate(resolve));
  claim.mockClear();
  await (await runtime.submit(worker, null)).result();
  expect(claim).not.toHaveBeenCalled();
  expect(release).not.toHaveBeenCalled();
  await runtime.close();
});
