import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from "vitest";
import { formatAgentId, type EngineFactory, type HostedAgent, type Runtime } from "../../src/kernel/index.ts";
import { restate } from "../../src/runtime/engines/restate/index.ts";
import { createRuntime } from "../../src/runtime/local-runtime.ts";
import { sha256 } from "../../src/runtime/process/sha256.ts";
import { postgresStore } from "../../src/runtime/stores/postgres/index.ts";
import { CountingServer } from "../../src/testing/index.ts";
import { servedAgent, use } from "../crash/served-agent.ts";
import { toolAnswer } from "../crash/workload.ts";
import { newSchema } from "../postgres/schemas.ts";
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
    await rm(folder, { recursive: true, force: true });
  });
  return runtime;
}

/** The statuses of the invocations that Restate keeps for the service of a test. */
async function statuses({ admin, service }: Cluster): Promise<readonly string[]> {
  const sql = `SELECT status FROM sys_invocation WHERE target_service_name = '${service}'`;
  return (await admin.query<{ readonly status: string }>(sql)).map(({ status }) => status);
}

function agent(run: HostedAgent["run"]): HostedAgent {
  return { id: formatAgentId({ name: "worker" }), run };
}

test("a call of 3 s under slices of 1 s is made once, by the count of the server that is called", async () => {
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

test("while a run sleeps, one delayed invocation is scheduled, and the run is not driven", async () => {
  const cluster = await newCluster(server, { sweepMs: 60_000 });
  const runtime = await open(cluster.engine);
  let drives = 0;
  const sleeper = agent(async (ctx) => {
    drives++;
    await ctx.sleep(600_000);
  });
  const run = await runtime.submit(sleeper, null);
  await expect.poll(() => statuses(cluster), { timeout: 30_000 }).toEqual(["scheduled"]);
  const before = drives;
  await run.steer("still asleep");
  for await (const event of run.events()) if ("seq" in event && event.type === "run_steer") break;
  // The mail was read in a slice of its own, after which the run waits for the same timer.
  await expect.poll(() => statuses(cluster), { timeout: 30_000 }).toEqual(["scheduled"]);
  expect(drives).toBe(before + 1);
  await run.cancel();
  expect((await run.result()).status).toBe("cancelled");
  await expect.poll(() => statuses(cluster), { timeout: 30_000 }).toEqual([]);
});

test("a timer that fires too early by the clock of the worker stays scheduled, and the run continues when it is due", async () => {
  const cluster = await newCluster(server, { sweepMs: 600_000 });
  let behindMs = 0;
  const runtime = await open((port) => {
    const { clock } = port;
    const schedule: typeof clock.schedule = (at, callback, options) =>
      clock.schedule(at + behindMs, callback, options);
    return cluster.engine({ ...port, clock: { now: () => clock.now() - behindMs, schedule } });
  });
  const run = await runtime.submit(
    agent(async (ctx) => {
      await ctx.sleep(2_000);
      return "done";
    }),
    null,
  );
  await expect.poll(() => statuses(cluster), { timeout: 30_000 }).toEqual(["scheduled"]);
  behindMs = 3_000;
  expect((await run.result()).output).toBe("done");
});

test("a run that sleeps keeps its timer if the result of its slice was lost on the way to Restate", async () => {
  const cluster = await newCluster(server, { sweepMs: 600_000 });
  let lost = 0;
  const runtime = await open((port) => {
    const engine = cluster.engine(port);
    return {
      kind: engine.kind,
      wake: (change) => engine.wake(change),
      agentsChanged: () => engine.agentsChanged(),
      stop: () => engine.stop(),
      start: (host) =>
        engine.start({
          drive: async (lease, options) => {
            const { rest, isReleased } = await host.drive(lease, options);
            if (!isReleased) await port.leases.release(lease, rest);
            if (lost++ === 0) {
              const ended = new Promise((resolve) => options?.signal?.addEventListener("abort", resolve));
              cluster.cutConnections();
              await ended;
            }
            return { rest, isReleased: true };
          },
        }),
    };
  });
  await runtime.submit(
    agent((ctx) => ctx.sleep(600_000)),
    null,
  );
  await expect.poll(() => lost, { timeout: 30_000 }).toBeGreaterThan(0);
  await expect.poll(() => statuses(cluster), { timeout: 30_000 }).toEqual(["scheduled"]);
});

test("Restate lets another worker drive a run after longestSliceMs, not after twice this time", async () => {
  const { engine, service } = await newCluster(server, { longestSliceMs: 90_000 });
  await open(engine);
  const answer = await fetch(`${server.adminUrl}/services/${service}`);
  expect(await answer.json()).toMatchObject({ inactivity_timeout: "1m 30s", abort_timeout: "1ms" });
});

test("a call that lasts longer than longestSliceMs is made once if the worker still drives the run", async () => {
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

test("a run that is submitted while Restate is unreachable is reported, stored, and driven later", async () => {
  const { engine, service } = await newCluster(server, { sweepMs: 200 });
  const codes: string[] = [];
  const folder = await mkdtemp(join(tmpdir(), "reeve-restate-store-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const store = `sqlite:${join(folder, "store.db")}` as const;
  const cutOff = await createRuntime({
    store,
    engine: restate({ ingressUrl: "http://127.0.0.1:9", service }),
    onError: ({ code }) => codes.push(code),
  });
  const worker = agent(async (ctx) => ctx.step("work", async () => "done"));
  const { runId } = await cutOff.submit(worker, null);
  await expect.poll(() => codes, { timeout: 30_000 }).toEqual(["engine_unavailable"]);
  await cutOff.close();
  const runtime = await createRuntime({ store, engine });
  onTestFinished(() => runtime.close());
  runtime.register(worker);
  expect((await (await runtime.find(runId))?.result())?.output).toBe("done");
});

test("the slices of a run leave no further invocations behind, although every worker hears that a slice released the run", async () => {
  const { engine, admin, service } = await newCluster(server, { sliceMs: 500, sweepMs: 600_000 });
  const [schema, url] = [newSchema(), inject("postgresUrl")];
  const [reached, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const stepper = agent(async (ctx) => {
    // Each step takes longer than a slice.
    for (let step = 0; step < 4; step++) await ctx.step("work", () => setTimeout(600, step));
    await ctx.step("last", async () => {
      reached.resolve();
      await goOn.promise;
      return null;
    });
    return "done";
  });
  const workers = [];
  for (const workerId of ["one", "two", "three"]) {
    const store = await postgresStore({ url, schema, hash: sha256, connections: 4 });
    const worker = await createRuntime({
      store,
      engine,
      workerId,
      suspendAfterMs: 0,
      onError: () => undefined,
    });
    onTestFinished(() => worker.close());
    worker.register(stepper);
    workers.push(worker);
  }
  const run = await workers[0]?.submit(stepper, null);
  await reached.promise;
  const sql = `SELECT id FROM sys_invocation WHERE target_service_name = '${service}'`;
  // One that drives the run, and one from each worker that heard of the new run.
  expect((await admin.query(sql)).length).toBeLessThanOrEqual(1 + workers.length);
  goOn.resolve();
  expect((await run?.result())?.output).toBe("done");
});
