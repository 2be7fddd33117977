import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { afterAll, beforeAll, expect, inject, onTestFinished, test, vi } from "vitest";
import {
  formatAgentId,
  type Engine,
  type EngineFactory,
  type HostedAgent,
  type RunHost,
  type RunId,
  type Runtime,
} from "../../src/kernel/index.ts";
import { restate, type RestateOptions } from "../../src/runtime/engines/restate/index.ts";
import { Ingress } from "../../src/runtime/engines/restate/ingress.ts";
import { createRuntime } from "../../src/runtime/local-runtime.ts";
import { sha256 } from "../../src/runtime/process/sha256.ts";
import { postgresStore } from "../../src/runtime/stores/postgres/index.ts";
import { idleEngine } from "../../src/surfaces/cli/setup/idle-engine.ts";
import { untilLongEnough } from "../../src/testing/contracts/engines/engine-world.ts";
import { CountingServer } from "../../src/testing/index.ts";
import { servedAgent, use } from "../crash/served-agent.ts";
import { toolAnswer } from "../crash/workload.ts";
import { newSchema } from "../postgres/schemas.ts";
import { Balancer } from "./balancer.ts";
import { newCluster, type Cluster } from "./cluster.ts";
import { RestateServer } from "./server.ts";

let server: RestateServer;

beforeAll(async () => {
  server = await RestateServer.start();
});
afterAll(() => server.stop());

async function open(
  engine: EngineFactory,
  onError: (error: Error) => void = () => undefined,
): Promise<Runtime> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-restate-store-"));
  const runtime = await createRuntime({
    store: `sqlite:${join(folder, "store.db")}`,
    engine,
    suspendAfterMs: 0,
    onError,
  });
  onTestFinished(async () => {
    await runtime.close();
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  });
  return runtime;
}

/** The statuses of the invocations that Restate keeps for the service of a test. */
async function statuses({ admin, service }: Cluster): Promise<readonly string[]> {
  const sql = `SELECT status FROM sys_invocation WHERE target_service_name = '${service}'`;
  return (await admin.query<{ readonly status: string }>(sql)).map(({ status }) => status);
}

/** Returns the engine with another function that executes its runs. */
function withDrive(
  engine: Engine,
  drive: (host: RunHost, ...args: Parameters<RunHost["drive"]>) => ReturnType<RunHost["drive"]>,
): Engine {
  return {
    kind: engine.kind,
    wake: (change) => engine.wake(change),
    agentsChanged: () => engine.agentsChanged(),
    stop: () => engine.stop(),
    start: (host) => engine.start({ drive: (...args) => drive(host, ...args) }),
  };
}

function agent(run: HostedAgent["run"]): HostedAgent {
  return { id: formatAgentId({ name: "worker" }), run };
}

test("a call of 3 s under Restate slices of 1 s is made once, by the count of the server that is called", async () => {
  const { engine } = await newCluster(server, { sliceMs: 1_000 });
  const runtime = await open(engine);
  const outside = await CountingServer.open();
  onTestFinished(() => outside.close());
  const book = outside.book("slices", ({ name, body }) => ({
    ...toolAnswer(name, body),
    ...(name === "slow" && { hold: () => setTimeout(3_000) }),
  }));
  const slow = servedAgent(
    { url: book.url, caller: "worker" },
    {
      name: "worker",
      tools: ["slow", "next"],
      run: async (ctx) => {
        await use(ctx, "slow");
        await use(ctx, "next");
        return "done";
      },
    },
  );
  expect((await (await runtime.submit(slow, null)).result()).output).toBe("done");
  expect(book.calls.map(({ name }) => name)).toEqual(["slow", "next"]);
});

test("while a run sleeps under Restate, one delayed invocation is scheduled, and the handler is not executed", async () => {
  const cluster = await newCluster(server, { sweepMs: 600_000 });
  const runtime = await open(cluster.engine);
  const sleeper = formatAgentId({ name: "sleeper" });
  const run = await runtime.submit({ id: sleeper, run: (ctx) => ctx.sleep(600_000) }, null);
  const handled = (): number | undefined => cluster.handled.get(run.runId);
  await expect.poll(() => statuses(cluster)).toEqual(["scheduled"]);
  const before = handled() ?? 0;
  // The worker executes another run meanwhile.
  const worker = agent(async (ctx) => {
    for (let step = 0; step < 5; step++) await ctx.step("work", () => setTimeout(100, null));
    return "done";
  });
  expect((await (await runtime.submit(worker, null)).result()).output).toBe("done");
  await expect.poll(() => statuses(cluster)).toEqual(["scheduled"]);
  expect(handled()).toBe(before);
  await run.steer("still asleep");
  for await (const event of run.events()) if ("seq" in event && event.type === "run_steer") break;
  // The mail was read in a slice of its own, after which the run waits for the same timer.
  await expect.poll(() => statuses(cluster)).toEqual(["scheduled"]);
  expect(handled()).toBe(before + 1);
  await run.cancel();
  expect((await run.result()).status).toBe("cancelled");
  await expect.poll(() => statuses(cluster)).toEqual([]);
});

test("each Restate slice records a step although its time is over before the run is loaded", async () => {
  const cluster = await newCluster(server, { sliceMs: 7_654, sweepMs: 600_000 });
  const runtime = await open((port) => {
    const { clock } = port;
    const schedule: typeof clock.schedule = (at, callback, options) => {
      const isSlice = at - clock.now() > 7_000 && at - clock.now() <= 7_654;
      return clock.schedule(isSlice ? 0 : at, callback, options);
    };
    const engine = cluster.engine({ ...port, clock: { now: () => clock.now(), schedule } });
    return withDrive(engine, async (host, lease, options) => {
      // The timer of the slice fires first.
      await setTimeout(1);
      return host.drive(lease, options);
    });
  });
  let calls = 0;
  const run = await runtime.submit(
    agent(async (ctx) => {
      for (let step = 0; step < 5; step++) await ctx.step("work", async () => ++calls);
      return "done";
    }),
    null,
  );
  expect((await run.result()).output).toBe("done");
  expect(calls).toBe(5);
  expect(cluster.handled.get(run.runId)).toBeGreaterThanOrEqual(5);
});

test("a Restate timer that fires too early by the worker's clock stays scheduled, and the run continues when it is due", async () => {
  const cluster = await newCluster(server, { sweepMs: 600_000 });
  let behindMs = 0;
  const runtime = await open((port) => {
    const { clock } = port;
    const schedule: typeof clock.schedule = (at, callback, options) =>
      clock.schedule(at + behindMs, callback, options);
    return cluster.engine({ ...port, clock: { now: () => clock.now() - behindMs, schedule } });
  });
  const sleeper = agent(async (ctx) => {
    await ctx.sleep(Number(ctx.input));
    return "done";
  });
  await untilLongEnough(2_000, async (sleepMs) => {
    behindMs = 0;
    const run = await runtime.submit(sleeper, sleepMs);
    let isOver = false;
    const ended = run.result().finally(() => (isOver = true));
    await expect.poll(async () => isOver || (await statuses(cluster)).join() === "scheduled").toBe(true);
    if (isOver) return false;
    behindMs = sleepMs + 1_000;
    expect((await ended).output).toBe("done");
    return true;
  });
});

test("a run that sleeps under Restate keeps its timer if the result of its slice was lost on the way to Restate", async () => {
  const cluster = await newCluster(server, { sweepMs: 600_000 });
  let lost = 0;
  const runtime = await open((port) => {
    const engine = cluster.engine(port);
    return withDrive(engine, async (host, lease, options) => {
      const { rest, isReleased } = await host.drive(lease, options);
      if (!isReleased) await port.leases.release(lease, rest);
      if (lost++ === 0) {
        const ended = new Promise((resolve) => options?.signal?.addEventListener("abort", resolve));
        cluster.cutConnections();
        await ended;
      }
      return { rest, isReleased: true };
    });
  });
  await runtime.submit(
    agent((ctx) => ctx.sleep(600_000)),
    null,
  );
  await expect.poll(() => lost).toBeGreaterThan(0);
  await expect.poll(() => statuses(cluster)).toEqual(["scheduled"]);
});

test("Restate lets another worker execute a run after longestSliceMs, and not only after twice this time", async () => {
  const { engine, service } = await newCluster(server, { longestSliceMs: 90_000 });
  await open(engine);
  const answer = await fetch(`${server.adminUrl}/services/${service}`);
  expect(await answer.json()).toMatchObject({ inactivity_timeout: "1m 30s", abort_timeout: "1ms" });
});

test("a call that lasts longer than longestSliceMs is made once if the worker still executes the run", async () => {
  const { engine } = await newCluster(server, { longestSliceMs: 500, sweepMs: 600_000 });
  const runtime = await open(engine);
  let calls = 0;
  const slow = agent((ctx) =>
    ctx.step("slow", async () => {
      calls++;
      return setTimeout(2_000, "done");
    }),
  );
  expect((await (await runtime.submit(slow, null)).result()).output).toBe("done");
  expect(calls).toBe(1);
});

test("a run that is submitted while Restate is unreachable is reported, stored, and executed later", async () => {
  const { engine, service } = await newCluster(server, { sweepMs: 200 });
  const codes: string[] = [];
  const folder = await mkdtemp(join(tmpdir(), "reeve-restate-store-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
  const store = `sqlite:${join(folder, "store.db")}` as const;
  const cutOff = await createRuntime({
    store,
    engine: restate({ ingressUrl: "http://127.0.0.1:9", service }),
    onError: ({ code }) => codes.push(code),
  });
  const worker = agent(async (ctx) => ctx.step("work", async () => "done"));
  const { runId } = await cutOff.submit(worker, null);
  await expect.poll(() => codes).toEqual(["engine_unavailable"]);
  await cutOff.close();
  const runtime = await createRuntime({ store, engine });
  onTestFinished(() => runtime.close());
  runtime.register(worker);
  expect((await (await runtime.find(runId))?.result())?.output).toBe("done");
});

interface Fleet {
  readonly cluster: Cluster;
  readonly workers: readonly Runtime[];
  /** Opens a runtime that executes no run and sends no wake-ups, as `reeve cancel` does. */
  readonly openClient: () => Promise<Runtime>;
}

/** Opens three workers without sweeps that share a PostgreSQL store, so that each worker learns what the others write. */
async function openFleet(hosted: HostedAgent, options: Partial<RestateOptions> = {}): Promise<Fleet> {
  const cluster = await newCluster(server, options);
  const [schema, url] = [newSchema(), inject("postgresUrl")];
  const openOne = async (engine: EngineFactory): Promise<Runtime> => {
    const store = await postgresStore({ url, schema, hash: sha256, connections: 4 });
    // The sweep at a worker's start may find a run before its first slice, and would send a further wake-up.
    vi.spyOn(store.leases, "findReady").mockResolvedValue([]);
    const runtime = await createRuntime({ store, engine, suspendAfterMs: 0, onError: () => undefined });
    onTestFinished(() => runtime.close());
    return runtime;
  };
  const workers = [];
  for (let count = 0; count < 3; count++) {
    const worker = await openOne(cluster.engine);
    worker.register(hosted);
    workers.push(worker);
  }
  return { cluster, workers, openClient: () => openOne(idleEngine) };
}

test("wake-ups of a run that is busy for many Restate slices leave no further invocations behind, with several workers", async () => {
  const begun = Promise.withResolvers<void>();
  let isOver = false;
  const stepper = agent(async (ctx) => {
    const work = async (): Promise<boolean> => {
      begun.resolve();
      // Longer than a slice.
      await setTimeout(150);
      return isOver;
    };
    while (!(await ctx.step("work", work)));
    return "done";
  });
  const { cluster, workers } = await openFleet(stepper, { sliceMs: 100 });
  const run = await workers[0]?.submit(stepper, null);
  await begun.promise;
  const ingress = new Ingress(server.ingressUrl, cluster.service);
  for (let count = 0; count < 3; count++) await ingress.send(run?.runId as RunId, { at: null });
  await expect.poll(() => statuses(cluster)).toEqual(["running"]);
  isOver = true;
  expect((await run?.result())?.output).toBe("done");
  await expect.poll(() => statuses(cluster)).toEqual([]);
});

test("each new run and each mail is one Restate invocation, although three workers learn of it", async () => {
  const waiter = agent(async (ctx) => {
    await ctx.waitForSignal("first");
    return ctx.waitForSignal("second");
  });
  const { cluster, workers } = await openFleet(waiter);
  for (const worker of workers) {
    const run = await worker.submit(waiter, null);
    const handled = (): number | undefined => cluster.handled.get(run.runId);
    const rests = async (): Promise<void> => {
      await expect.poll(() => statuses(cluster)).toEqual([]);
    };
    await expect.poll(handled).toBe(1);
    await rests();
    await run.signal("first", null);
    await expect.poll(handled).toBe(2);
    await rests();
    await run.signal("second", "done");
    expect((await run.result()).output).toBe("done");
    await rests();
    expect(handled()).toBe(3);
  }
});

test("mail of a process without an engine leaves one further Restate invocation behind, although three workers wake the run", async () => {
  const [begun, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const worker = agent(async (ctx) =>
    ctx.step("work", async () => {
      begun.resolve();
      await goOn.promise;
      return "done";
    }),
  );
  const { cluster, workers, openClient } = await openFleet(worker);
  const run = await workers[0]?.submit(worker, null);
  await begun.promise;
  const client = await openClient();
  const found = await client.find(run?.runId ?? "");
  for (let mail = 0; mail < 5; mail++) await found?.steer(`note ${mail}`);
  const counted = async (): Promise<readonly string[]> => (await statuses(cluster)).toSorted();
  await expect.poll(counted).toEqual(["pending", "running"]);
  goOn.resolve();
  expect((await run?.result())?.output).toBe("done");
  await expect.poll(counted).toEqual([]);
});

test("a process that hosts no agent repeats the wake-up of its run once Restate is reachable", async () => {
  const cluster = await newCluster(server, { sweepMs: 600_000 });
  const worker = agent(async (ctx) => ctx.step("work", async () => "done"));
  const [schema, url] = [newSchema(), inject("postgresUrl")];
  const newStore = () => postgresStore({ url, schema, hash: sha256, connections: 4 });
  const hosting = await createRuntime({ store: await newStore(), engine: cluster.engine });
  onTestFinished(() => hosting.close());
  hosting.register(worker);
  const gate = await Balancer.open();
  onTestFinished(() => gate.close());
  const serving = await createRuntime({
    store: await newStore(),
    engine: restate({ ingressUrl: gate.uri, service: cluster.service, sweepMs: 600_000 }),
    onError: () => undefined,
  });
  onTestFinished(() => serving.close());
  const run = await serving.submit({ id: worker.id, run: async () => null }, null);
  gate.add(Number(new URL(server.ingressUrl).port));
  expect((await run.result()).output).toBe("done");
});
