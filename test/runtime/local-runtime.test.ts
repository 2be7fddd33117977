import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import {
  Fault,
  formatRunId,
  formatSessionId,
  HistoryRetention,
  type SubmitOptions,
} from "../../src/kernel/index.ts";
import { createRuntime } from "../../src/runtime/local-runtime.ts";
import { memoryStore, sha256, type RuntimeOptions } from "../../src/runtime/index.ts";
import { FakeClock } from "../../src/testing/index.ts";
import { agent, gate, until } from "./runtime-setup.ts";

test.for<RuntimeOptions>([
  { keepEndedRunsMs: -1 },
  { inbox: { maxDeliveries: 0 } },
  { inbox: { maxDeliveries: 1.5 } },
  { inbox: { baseDelayMs: -1 } },
  { inbox: { maxDelayMs: Number.NaN } },
  { inbox: { maxDelayMs: Infinity } },
  { keepEndedRunsMs: Number.NaN },
  { concurrency: 0 },
  { concurrency: Number.NaN },
  { pollMs: 0 },
  { suspendAfterMs: -1 },
  { closeGraceMs: Number.NaN },
  { stopGraceMs: Number.NaN },
  { stopGraceMs: -1 },
  { warnAt: 2 },
  { retry: { maxRetries: Number.NaN } },
  { retry: { maxDelayMs: -1 } },
  { retry: { jitter: Number.NaN } },
  { maxValueBytes: 0 },
  { maxValueBytes: 1.5 },
  { maxValueBytes: Infinity },
  { runRetry: { maxRetries: 0.5 } },
  { runRetry: { baseDelayMs: Number.NaN } },
  { caps: { perDayUsd: -1 } },
  { modelTimeouts: { totalMs: -1 } },
])("createRuntime refuses %o and opens no store", async (options) => {
  const folder = await mkdtemp(join(tmpdir(), "reeve-open-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const store = `sqlite:${join(folder, "store.db")}` as const;
  const [name] = Object.keys(options);
  await expect(createRuntime({ store, ...options })).rejects.toMatchObject({
    code: "invalid_argument",
    message: expect.stringMatching(
      new RegExp(`^invalid (?:${name} \\S+ of openRuntime\\(\\)|\\w+ \\S+ of .*${name})`, "u"),
    ),
  });
  expect(await readdir(folder)).toEqual([]);
});

test.each(["agents", "agent", "workers"])(
  "createRuntime names runtime.register() for the option %s, which createRuntime does not have",
  async (name) => {
    await expect(createRuntime({ [name]: [] })).rejects.toThrow(
      `unknown option "${name}" of openRuntime(): open the runtime without it, then call runtime.register(agent)`,
    );
  },
);

test("createRuntime closes the store that it opened if the engine cannot be created", async () => {
  const folder = await mkdtemp(join(tmpdir(), "reeve-open-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const engine = (): never => {
    throw new Error("no engine");
  };
  await expect(createRuntime({ store: `sqlite:${join(folder, "store.db")}`, engine })).rejects.toThrow(
    "no engine",
  );
  // SQLite deletes its write-ahead log when the last connection closes.
  const files = await readdir(folder);
  expect(files).toContain("store.db");
  expect(files.filter((each) => each.endsWith("-wal"))).toEqual([]);
});

test("when createRuntime fails, a store that the caller has opened stays open and no listener is left", async () => {
  const store = memoryStore({ hash: sha256 });
  let closed = false;
  let listeners = 0;
  const callersStore = {
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
  await expect(createRuntime({ store: callersStore, closeOn: ["SIGUSR2"] })).rejects.toThrow("full");
  expect({ closed, listeners, signals: process.listenerCount("SIGUSR2") }).toEqual({
    closed: false,
    listeners: 0,
    signals: 0,
  });
});

test.each([["SIGFOO"], ["SIGKILL"], "SIGTERM", [15]])(
  "createRuntime() refuses closeOn %j and names the expected signals",
  async (closeOn) => {
    await expect(createRuntime({ closeOn: closeOn as never })).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringMatching(
        /^invalid closeOn .* of openRuntime\(\): expected .*\["SIGTERM", "SIGINT"\]/u,
      ),
    });
  },
);

test("a run that is being loaded during close() is not started, and close() does not wait for the load", async () => {
  const store = memoryStore({ hash: sha256 });
  const [reading, proceed] = [gate(), gate()];
  const replay = store.journal.replay.bind(store.journal);
  let reads = 0;
  store.journal.replay = async (...args) => {
    if (++reads === 1) await (reading.resolve(), proceed.promise);
    return replay(...args);
  };
  const starts: string[] = [];
  const slow = (name: string) =>
    agent("slow", async (ctx) => {
      starts.push(name);
      if (name === "one") await ctx.step("never ends", () => new Promise<null>(() => {}));
      return name;
    });
  const one = await createRuntime({ store });
  const { runId } = await one.submit(slow("one"), null);
  await reading.promise;
  const closed = one.close();
  proceed.resolve();
  await closed;
  expect(starts).toEqual([]);
  const two = await createRuntime({ store });
  two.register(slow("two"));
  await until(() => starts.length > 0);
  expect((await (await two.find(runId))?.result())?.output).toBe("two");
  await two.close();
});

test('an agent whose submission was refused can be garbage-collected with sameName: "replace"', async () => {
  const runtime = await createRuntime({ sameName: "replace" });
  const [started, proceed] = [gate(), gate()];
  const clerk = () =>
    agent("clerk", async (ctx) =>
      ctx.step("work", async () => (started.resolve(), await proceed.promise, null)),
    );
  const sessionId = formatSessionId("busy");
  const run = await runtime.submit(clerk(), null, { sessionId });
  await started.promise;
  const refused = await (async () => {
    const other = clerk();
    await expect(runtime.submit(other, null, { sessionId })).rejects.toMatchObject({ code: "agent_busy" });
    return new WeakRef(other);
  })();
  runtime.register(clerk());
  const isCollected = (): boolean => {
    globalThis.gc?.();
    return refused.deref() === undefined;
  };
  await expect.poll(isCollected).toBe(true);
  proceed.resolve();
  await run.result();
  await runtime.close();
});

test('a failed run keeps its agent until the run is collected with sameName: "replace", because it may be resumed', async () => {
  const clock = new FakeClock();
  const runtime = await createRuntime({ sameName: "replace", clock });
  onTestFinished(() => runtime.close());
  let fails = true;
  const clerk = (output: string) =>
    agent("clerk", async () => {
      if (fails) throw new Fault("unsupported", "not yet");
      return output;
    });
  const submitClerk = async (output: string) => {
    const submitted = clerk(output);
    const run = await runtime.submit(submitted, null);
    expect((await run.result()).status).toBe("failed");
    return { run, agent: new WeakRef(submitted) };
  };
  const first = await submitClerk("first");
  const second = await submitClerk("second");
  runtime.register(clerk("another"));
  fails = false;
  await first.run.resume();
  expect((await first.run.result()).output).toBe("first");
  await clock.advance(1_000);
  expect(await runtime.collect({ endedBefore: clock.now() })).toBe(2);
  const areCollected = (): boolean => {
    globalThis.gc?.();
    return [first, second].every((each) => each.agent.deref() === undefined);
  };
  await expect.poll(areCollected).toBe(true);
});

test("submit() of an agent with a sub-agent of the same name is refused and registers neither of them", async () => {
  const runtime = await createRuntime();
  onTestFinished(() => runtime.close());
  const inner = agent("clerk", async () => "inner");
  const lead = agent("clerk", async () => "lead", {
    subAgents: [agent("other", async () => "other"), inner],
  });
  for (let attempt = 0; attempt < 2; attempt++) {
    await expect(runtime.submit(lead, null)).rejects.toMatchObject({
      code: "already_exists",
      message: expect.stringMatching(/clerk.*(?:name|key)/),
    });
  }
  // Both names are free.
  for (const other of [agent("clerk", async () => "mine"), agent("other", async () => "mine")])
    expect((await (await runtime.submit(other, null)).result()).output).toBe("mine");
});

test("register() of another agent with a taken name throws and names the possible solutions", async () => {
  const runtime = await createRuntime();
  onTestFinished(() => runtime.close());
  runtime.register(agent("clerk", async () => "first"));
  expect(() => runtime.register(agent("clerk", async () => "second"))).toThrow(
    /another name or a key.*sameName/,
  );
});

test("a repeated submission with a runId returns its run, and another agent or input is refused", async () => {
  const runtime = await createRuntime();
  onTestFinished(() => runtime.close());
  const runId = formatRunId("order-7");
  const clerk = agent("clerk", async () => "clerk's");
  const first = await runtime.submit(clerk, { item: 1, count: 2 }, { runId });
  expect((await runtime.submit(clerk, { count: 2, item: 1 }, { runId })).runId).toBe(first.runId);
  const refused = { code: "already_exists", details: { runId, agentId: clerk.id } };
  await expect(
    runtime.submit(
      agent("other", async () => "other's"),
      null,
      { runId },
    ),
  ).rejects.toMatchObject(refused);
  await expect(runtime.submit(clerk, { item: 2, count: 2 }, { runId })).rejects.toMatchObject(refused);
  await expect(runtime.submit(clerk, null, { runId: "job-1" })).rejects.toMatchObject({
    code: "invalid_argument",
    message: expect.stringContaining("run_"),
  });
});

test.each([undefined, HistoryRetention.NONE])(
  "S6: a runId of another user of the tenant is refused, and one of another tenant names a new run (retention: %s)",
  async (retention) => {
    const runtime = await createRuntime();
    onTestFinished(() => runtime.close());
    const runId = formatRunId("order-8");
    const clerk = agent("clerk", async () => "ada's");
    const options: SubmitOptions = { runId, ...(retention !== undefined && { retention }) };
    const ada = { ...options, userId: "ada", tenantId: "north" };
    const first = await runtime.submit(clerk, null, ada);
    await first.result();
    expect((await runtime.submit(clerk, null, ada)).runId).toBe(first.runId);
    expect((await runtime.submit(clerk, null, { ...ada, runId: first.runId })).runId).toBe(first.runId);
    for (const other of [{ tenantId: "north" }, { userId: "eve", tenantId: "north" }])
      await expect(runtime.submit(clerk, null, { ...options, ...other })).rejects.toMatchObject({
        code: "already_exists",
        message: `${first.runId} belongs to another user: choose another id, or omit it`,
        details: { runId: first.runId },
      });
    const ids = new Set<string>([first.runId]);
    for (const other of [{ userId: "ada" }, { userId: "ada", tenantId: "south" }])
      ids.add((await runtime.submit(clerk, null, { ...options, ...other })).runId);
    expect(ids.size).toBe(3);
  },
);

test("a repeated submission with a runId returns its run although the input is not retained", async () => {
  const runtime = await createRuntime();
  onTestFinished(() => runtime.close());
  const clerk = agent("clerk", async () => "done");
  const options = { runId: formatRunId("again"), retention: HistoryRetention.NONE };
  const first = await runtime.submit(clerk, "secret", options);
  expect((await first.result()).status).toBe("completed");
  expect((await runtime.submit(clerk, "secret", options)).runId).toBe(first.runId);
});
