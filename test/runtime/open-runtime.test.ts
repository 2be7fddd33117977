import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { formatSessionId } from "../../src/kernel/index.ts";
import { memoryStore, openRuntime, sha256, type RuntimeOptions } from "../../src/runtime/index.ts";
import { agent, gate, until } from "./bench-runtime.ts";

test.for<RuntimeOptions>([
  { keepEndedRunsMs: -1 },
  { keepEndedRunsMs: Number.NaN },
  { concurrency: 0 },
  { concurrency: Number.NaN },
  { pollMs: 0 },
  { suspendAfterMs: -1 },
  { closeGraceMs: Number.NaN },
  { stopGraceMs: Number.NaN },
  { stopGraceMs: -1 },
  { warnAt: 2 },
])("%o is refused, and the store that was opened for it is closed", async (options) => {
  const folder = await mkdtemp(join(tmpdir(), "reeve-open-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const store = `sqlite:${join(folder, "store.db")}` as const;
  const [name] = Object.keys(options);
  await expect(openRuntime({ store, ...options })).rejects.toMatchObject({
    code: "invalid_argument",
    message: expect.stringContaining(`${name} is `),
  });
  // SQLite's log goes with the last connection.
  expect((await readdir(folder)).filter((each) => each.endsWith("-wal"))).toEqual([]);
});

test("a store that was handed in stays open, and no signal is listened for, when a runtime cannot be opened", async () => {
  const store = memoryStore({ hash: sha256 });
  let closed = false;
  let listeners = 0;
  const handed = {
    ...store,
    close: async () => {
      closed = true;
    },
    onChange: () => {
      listeners++;
      return () => {
        listeners--;
      };
    },
    leases: { ...store.leases, enlist: () => Promise.reject(new Error("full")) },
  } as never;
  await expect(openRuntime({ store: handed, closeOn: ["SIGUSR2"] })).rejects.toThrow("full");
  expect({ closed, listeners, signals: process.listenerCount("SIGUSR2") }).toEqual({
    closed: false,
    listeners: 0,
    signals: 0,
  });
});

test("a run that is being loaded when its worker closes is not begun there, and closing does not wait for it", async () => {
  const store = memoryStore({ hash: sha256 });
  const [read, go] = [gate(), gate()];
  const journal = store.journal.read.bind(store.journal);
  let reads = 0;
  // As of a store that has to be waited for.
  Object.assign(store.journal, { readNow: undefined });
  store.journal.read = async function* slow(...args) {
    if (++reads === 1) await (read.resolve(), go.promise);
    yield* journal(...args);
  };
  const began: string[] = [];
  const slow = (name: string) =>
    agent("slow", async (ctx) => {
      began.push(name);
      if (name === "one") await ctx.step("for ever", () => new Promise<null>(() => {}));
      return name;
    });
  const one = await openRuntime({ store });
  const { runId } = await one.submit(slow("one"), null);
  await read.promise;
  const closed = one.close();
  go.resolve();
  await closed;
  expect(began).toEqual([]);
  const two = await openRuntime({ store });
  two.register(slow("two"));
  await until(() => began.length > 0);
  expect((await (await two.find(runId))?.result())?.output).toBe("two");
  await two.close();
});

test("an agent whose submission was refused is not held for it", async () => {
  const runtime = await openRuntime({ sameName: "replace" });
  const [begun, go] = [gate(), gate()];
  const clerk = () =>
    agent("clerk", async (ctx) => ctx.step("work", async () => (begun.resolve(), await go.promise, null)));
  const sessionId = formatSessionId("busy");
  const run = await runtime.submit(clerk(), null, { sessionId });
  await begun.promise;
  const refused = await (async () => {
    const other = clerk();
    await expect(runtime.submit(other, null, { sessionId })).rejects.toMatchObject({ code: "agent_busy" });
    return new WeakRef(other);
  })();
  runtime.register(clerk());
  const collected = (): boolean => {
    globalThis.gc?.();
    return refused.deref() === undefined;
  };
  await expect.poll(collected).toBe(true);
  go.resolve();
  await run.result();
  await runtime.close();
});
