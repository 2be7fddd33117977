import { once } from "node:events";
import { createServer } from "node:http";
import { connect } from "node:http2";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import {
  flowControl,
  formatAgentId,
  type HostedAgent,
  type RunHandle,
  type Runtime,
} from "../../src/kernel/index.ts";
import { restate } from "../../src/runtime/engines/restate/index.ts";
import { openStore } from "../../src/runtime/index.ts";
import { createRuntime } from "../../src/runtime/local-runtime.ts";
import { observedStore } from "../../src/surfaces/cli/setup/observed-store.ts";
import { reeve } from "../surfaces/cli/reeve-process.ts";
import { newCluster, type Cluster } from "./cluster.ts";
import { RestateServer } from "./server.ts";
import { temporaryFolder } from "./temporary-folder.ts";

let server: RestateServer;

beforeAll(async () => {
  server = await RestateServer.start();
});
afterAll(() => server.stop());

/** A worker that executes at most two runs at the same time, and counts the leases that it holds. */
interface Worker {
  readonly runtime: Runtime;
  readonly leases: { held: number; most: number };
}

async function openWorker({ engine }: Cluster, address: `sqlite:${string}`): Promise<Worker> {
  const leases = { held: 0, most: 0 };
  const store = observedStore(await openStore(address), {
    claimed: () => {
      leases.held++;
      leases.most = Math.max(leases.most, leases.held);
    },
    released: () => void leases.held--,
    leaseLost: () => void leases.held--,
    registrationLost: () => undefined,
    committed: () => undefined,
  });
  const runtime = await createRuntime({
    store,
    engine,
    concurrency: 2,
    suspendAfterMs: 600_000,
    closeGraceMs: 600_000,
  });
  onTestFinished(async () => {
    await runtime.close();
    await store.close();
  });
  return { runtime, leases };
}

async function newAddress(): Promise<`sqlite:${string}`> {
  return `sqlite:${join(await temporaryFolder(), "store.db")}`;
}

/** Returns the number of invocations of the service in Restate by their status. */
async function invocations({ admin, service }: Cluster, key?: string): Promise<Record<string, number>> {
  const where = key === undefined ? "" : ` AND target_service_key = '${key}'`;
  const rows = await admin.query<{ readonly status: string; readonly count: number }>(
    `SELECT status, count(1) AS count FROM sys_invocation WHERE target_service_name = '${service}'${where} GROUP BY status`,
  );
  return Object.fromEntries(rows.map(({ status, count }) => [status, count]));
}

/** An agent whose runs work until the test lets them continue. */
function heldAgent() {
  const gate = Promise.withResolvers<void>();
  // A worker waits for the call when it closes, also after a failed test.
  onTestFinished(() => gate.resolve());
  const held = {
    working: 0,
    /** The runs that have worked. */
    runIds: [] as string[],
    go: gate.resolve,
    agent: {
      id: formatAgentId({ name: "held" }),
      run: async (ctx) =>
        ctx.step("work", async () => {
          held.working++;
          held.runIds.push(ctx.meta.runId);
          await gate.promise;
          return "done";
        }),
    } satisfies HostedAgent,
  };
  return held;
}

test("a Restate worker with concurrency 2 executes two runs at a time; slices of further runs wait without a lease", async () => {
  const cluster = await newCluster(server);
  const { runtime, leases } = await openWorker(cluster, await newAddress());
  const held = heldAgent();
  const runs = await Promise.all([1, 2, 3, 4, 5, 6].map(() => runtime.submit(held.agent, null)));
  await expect.poll(() => invocations(cluster)).toMatchObject({ running: 6 });
  await expect.poll(() => held.working).toBe(2);
  expect(leases.held).toBe(2);
  held.go();
  for (const run of runs) expect((await run.result()).output).toBe("done");
  expect(leases.most).toBe(2);
});

test("a run that only waits gives its slot of a Restate worker to the next run, and continues although all slots are taken", async () => {
  const cluster = await newCluster(server);
  const { runtime, leases } = await openWorker(cluster, await newAddress());
  const waiting: HostedAgent = {
    id: formatAgentId({ name: "waiting" }),
    run: (ctx) => ctx.waitForSignal("go"),
  };
  const asleep = await Promise.all([1, 2, 3].map(() => runtime.submit(waiting, null)));
  await expect.poll(() => leases.held).toBe(3);
  const held = heldAgent();
  const busy = await Promise.all([1, 2].map(() => runtime.submit(held.agent, null)));
  await expect.poll(() => held.working).toBe(2);
  for (const run of asleep) {
    await run.signal("go", "went");
    expect((await run.result()).output).toBe("went");
  }
  held.go();
  for (const run of busy) expect((await run.result()).output).toBe("done");
});

test("a slice that waits for a slot of a closing Restate worker is executed by another worker, which repeats no call", async () => {
  // All slices share one connection, which Restate must not give up.
  const single = await RestateServer.start({ partitions: 1 });
  onTestFinished(() => single.stop());
  const cluster = await newCluster(single);
  const address = await newAddress();
  const one = await openWorker(cluster, address);
  const held = heldAgent();
  const runs: RunHandle[] = [];
  while (runs.length < 3) {
    runs.push(await one.runtime.submit(held.agent, null));
    await expect.poll(() => invocations(cluster)).toMatchObject({ running: runs.length });
  }
  await expect.poll(() => held.working).toBe(2);
  const other = await openWorker(cluster, address);
  other.runtime.register(held.agent);
  const closing = one.runtime.close();
  await expect.poll(() => held.working).toBe(3);
  expect([one.leases.held, other.leases.held]).toEqual([2, 1]);
  held.go();
  await closing;
  for (const { runId } of runs)
    expect((await (await other.runtime.find(runId))?.result())?.output).toBe("done");
  expect([held.working, other.leases.most]).toEqual([3, 1]);
});

test("a Restate worker that closes accepts no more invocations while a slice of it is open", async () => {
  const cluster = await newCluster(server);
  const { runtime, leases } = await openWorker(cluster, await newAddress());
  const held = heldAgent();
  await runtime.submit(held.agent, null);
  await expect.poll(() => held.working).toBe(1);
  const client = connect(`http://127.0.0.1:${cluster.ports[0]}`);
  onTestFinished(() => client.destroy());
  await once(client, "remoteSettings");
  const goaway = once(client, "goaway");
  const closing = runtime.close();
  await goaway;
  expect(leases.held).toBe(1);
  held.go();
  await closing;
});

test("any number of sweeps of the Restate engine leaves one further invocation of a run that waits for a slot", async () => {
  const cluster = await newCluster(server, { sweepMs: 600_000 });
  const address = await newAddress();
  const { runtime } = await openWorker(cluster, address);
  const held = heldAgent();
  const runs = await Promise.all([1, 2, 3].map(() => runtime.submit(held.agent, null)));
  await expect.poll(() => held.working).toBe(2);
  // Restate may start the invocations in another order than that of the runs.
  const waits = runs.find(({ runId }) => !held.runIds.includes(runId)) as RunHandle;
  const proxy = await countingProxy(server.ingressUrl);
  const { service } = cluster;
  const sweeper = await createRuntime({
    store: address,
    engine: restate({ ingressUrl: proxy.url, service, sweepMs: 20 }),
  });
  sweeper.register(held.agent);
  const waitingInvocations = () => invocations(cluster, waits.runId);
  await expect.poll(waitingInvocations).toEqual({ running: 1, pending: 1 });
  const sent = proxy.count();
  await expect.poll(proxy.count).toBeGreaterThan(sent + 5);
  await sweeper.close();
  expect(await waitingInvocations()).toEqual({ running: 1, pending: 1 });
  held.go();
  expect((await waits.result()).output).toBe("done");
});

test("L17: with Restate, a run that waits for its rate starts at its time without a sweep", async () => {
  const cluster = await newCluster(server, { sweepMs: 600_000 });
  const { runtime } = await openWorker(cluster, await newAddress());
  const order: HostedAgent = {
    id: formatAgentId({ name: "order" }),
    run: async () => "done",
    flowOf: flowControl("agent order", "order", { rate: { limit: 1, perMs: 2_000 } }),
  };
  for (const input of [1, 2]) await (await runtime.submit(order, input)).result();
  expect(await runtime.count({ status: "completed" })).toBe(2);
});

test("reeve cancel wakes a run that Restate executes on a SQLite store before the next regular sweep", async () => {
  const cluster = await newCluster(server, { sweepMs: 600_000 });
  const address = await newAddress();
  const runtime = await createRuntime({ store: address, engine: cluster.engine, suspendAfterMs: 0 });
  onTestFinished(() => runtime.close());
  const sleeper: HostedAgent = {
    id: formatAgentId({ name: "sleeper" }),
    run: async (ctx) => ctx.sleep(600_000),
  };
  const run = await runtime.submit(sleeper, null);
  await expect.poll(() => invocations(cluster)).toEqual({ scheduled: 1 });
  expect(await reeve(["cancel", run.runId, "--store", address])).toMatchObject({ code: 0 });
  expect((await run.result()).status).toBe("cancelled");
});

/** An HTTP proxy that counts the wake-ups that pass it. */
async function countingProxy(
  target: string,
): Promise<{ readonly url: string; readonly count: () => number }> {
  let sent = 0;
  const proxy = createServer((request, response) => {
    const pass = async (): Promise<void> => {
      const body = (await request.toArray()).map(String).join("");
      const headers = new Headers({ "content-type": "application/json" });
      const key = request.headers["idempotency-key"];
      if (typeof key === "string") headers.set("idempotency-key", key);
      const answer = await fetch(target + (request.url ?? ""), { method: "POST", headers, body });
      response.writeHead(answer.status).end(await answer.text());
      sent++;
    };
    pass().catch((error: unknown) => response.writeHead(502).end(String(error)));
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  onTestFinished(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  return { url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, count: () => sent };
}
