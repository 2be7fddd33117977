import { copyFileSync, existsSync, readdirSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import type { Fault, Runtime } from "../../../src/kernel/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { sha256 } from "../../../src/runtime/index.ts";
import { sqliteStore } from "../../../src/runtime/stores/sqlite/store.ts";
import { agent } from "../runtime-setup.ts";
import { newPath, openStore } from "../stores/sqlite/store-files.ts";

interface Worker {
  readonly path: string;
  readonly runtime: Runtime;
  readonly errors: readonly Fault[];
}

/** Opens a worker that looks at its file at the interval. */
async function openWorker(everyMs: number): Promise<Worker> {
  const path = await newPath();
  const errors: Fault[] = [];
  const runtime = await createRuntime({
    store: await sqliteStore({ path, hash: sha256, watchEveryMs: everyMs }),
    pollMs: everyMs,
    closeGraceMs: 60_000,
    onError: (error) => errors.push(error),
  });
  onTestFinished(() => runtime.close());
  return { path, runtime, errors };
}

const removals: Readonly<Record<string, (path: string) => void>> = {
  "the file was deleted": (path) => rmSync(path),
  "the file was moved away": (path) => renameSync(path, `${path}.old`),
  "its folder was deleted": (path) => rmSync(dirname(path), { recursive: true }),
  "the file was replaced": (path) => {
    copyFileSync(path, `${path}.copy`);
    renameSync(`${path}.copy`, path);
  },
  "its write-ahead log was deleted": (path) => rmSync(`${path}-wal`),
};

for (const [what, remove] of Object.entries(removals))
  test(`a worker of a SQLite store stops with store_lost and ends the calls in flight after ${what}`, async () => {
    const { path, runtime, errors } = await openWorker(5);
    const started = Promise.withResolvers<void>();
    const aborted = Promise.withResolvers<void>();
    const calls = agent("calls", (ctx) =>
      ctx.step("call", async ({ signal }) => {
        signal.addEventListener("abort", () => aborted.resolve());
        started.resolve();
        return new Promise<never>(() => {});
      }),
    );
    const run = await runtime.submit(calls, null);
    await started.promise;
    remove(path);
    await aborted.promise;
    await expect(run.result()).rejects.toMatchObject({ code: "store_lost", details: { path } });
    await expect(runtime.submit(calls, null)).rejects.toMatchObject({ code: "store_lost" });
    expect(errors.map(({ code }) => code)).toEqual(["store_lost"]);
    // The worker has created nothing at the place of the store.
    expect(existsSync(dirname(path))).toBe(what !== "its folder was deleted");
  });

test("a run whose store file was deleted during a call starts no other call, although no poll has noticed the deletion", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const { path, runtime } = await openWorker(600_000);
  const [started, first] = [Promise.withResolvers<void>(), Promise.withResolvers<string>()];
  const steps: string[] = [];
  const caller = agent("caller", async (ctx) => {
    await ctx.step("first", () => (started.resolve(), first.promise));
    return ctx.step("second", async () => (steps.push("second"), "paid"));
  });
  const run = await runtime.submit(caller, null);
  await started.promise;
  rmSync(path);
  vi.advanceTimersByTime(1_000);
  first.resolve("answer");
  await expect(run.result()).rejects.toMatchObject({ code: "store_lost" });
  expect(steps).toEqual([]);
});

test("a reader of the events of a deleted store gets store_lost, and the files of a new store stay unchanged", async () => {
  const path = await newPath();
  const store = await openStore(path, { watchEveryMs: 5 });
  const runtime = await createRuntime({ store: await openStore(path), onError: () => undefined });
  onTestFinished(() => runtime.close());
  const run = await runtime.submit(
    agent("waits", async (ctx) => void (await ctx.waitForSignal("never"))),
    null,
  );
  const reading = (async () => {
    for await (const event of store.events.tail(run.runId)) void event;
  })();
  const failure = reading.catch((error: unknown) => error);
  for (const ending of ["", "-wal", "-shm"]) rmSync(path + ending);
  expect(await failure).toMatchObject({ code: "store_lost" });
  const fresh = await openStore(path);
  const before = readdirSync(dirname(path)).toSorted();
  await store.close();
  expect(readdirSync(dirname(path)).toSorted()).toEqual(before);
  expect((await fresh.journal.list()).runs).toEqual([]);
});
