import { afterAll, beforeAll, expect, inject, onTestFinished, test } from "vitest";
import { formatAgentId, type HostedAgent, type RunHandle, type Runtime } from "../../src/kernel/index.ts";
import { RestateAdmin, restate } from "../../src/runtime/engines/restate/index.ts";
import { createRuntime } from "../../src/runtime/local-runtime.ts";
import { sha256 } from "../../src/runtime/process/sha256.ts";
import { postgresStore } from "../../src/runtime/stores/postgres/index.ts";
import { newSchema } from "../postgres/schemas.ts";
import { newCluster, type Cluster } from "./cluster.ts";
import { forgeSlice } from "./forged-slice.ts";
import { RestateServer } from "./server.ts";

let [signing, open]: RestateServer[] = [];

beforeAll(async () => {
  [signing, open] = await Promise.all([RestateServer.start({ signs: true }), RestateServer.start()]);
});
afterAll(async () => {
  await Promise.all([signing?.stop(), open?.stop()]);
});

/** A run that is in a paid call until `answer` is called, on one of two workers that share a PostgreSQL store. */
interface BusyRun {
  readonly run: RunHandle;
  readonly cluster: Cluster;
  /** Number of times that the call was made. */
  readonly calls: () => number;
  readonly answer: () => void;
}

async function startBusyRun(server: RestateServer | undefined): Promise<BusyRun> {
  const cluster = await newCluster(server as RestateServer, { sweepMs: 600_000 });
  const [begun, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let calls = 0;
  const paid: HostedAgent = {
    id: formatAgentId({ name: "payer" }),
    run: (ctx) =>
      ctx.step("pay", async () => {
        calls++;
        begun.resolve();
        await goOn.promise;
        return "paid";
      }),
  };
  const [schema, url] = [newSchema(), inject("postgresUrl")];
  const workers: Runtime[] = [];
  for (let count = 0; count < 2; count++) {
    const store = await postgresStore({ url, schema, hash: sha256, connections: 4 });
    const runtime = await createRuntime({ store, engine: cluster.engine, onError: () => undefined });
    onTestFinished(() => runtime.close());
    runtime.register(paid);
    workers.push(runtime);
  }
  const run = (await workers[0]?.submit(paid, null)) as RunHandle;
  await begun.promise;
  return { run, cluster, calls: () => calls, answer: goOn.resolve };
}

test("forged Restate invocations without a signature neither repeat a paid call nor fail the run while its owner is alive", async () => {
  const { run, cluster, calls, answer } = await startBusyRun(open);
  const { service, ports } = cluster;
  // More attempts than recoveries after which a run counts as a crash loop, at both workers.
  for (let attempt = 0; attempt < 4; attempt++)
    for (const port of ports) await forgeSlice(port, { service, runId: run.runId, patienceMs: 300 });
  expect(cluster.handled.get(run.runId)).toBeGreaterThan(6);
  expect(calls()).toBe(1);
  answer();
  expect(await run.result()).toMatchObject({ status: "completed", output: "paid" });
  expect(calls()).toBe(1);
});

test("a Restate worker with an identity key refuses forged slices and deployments, and executes signed ones", async () => {
  const { run, cluster, calls, answer } = await startBusyRun(signing);
  const { service, ports } = cluster;
  const before = cluster.handled.get(run.runId);
  for (const port of ports) {
    expect((await forgeSlice(port, { service, runId: run.runId })).status).toBe(401);
    const stranger = new RestateAdmin(open?.adminUrl ?? "");
    await expect(stranger.deploy(`http://127.0.0.1:${port}`)).rejects.toThrow("401");
  }
  expect(cluster.handled.get(run.runId)).toBe(before);
  answer();
  expect(await run.result()).toMatchObject({ status: "completed", output: "paid" });
  expect(calls()).toBe(1);
});

test("a Restate slice of a run whose owner has lost its connection to Restate waits for the owner, who makes the call once", async () => {
  const { run, cluster, calls, answer } = await startBusyRun(open);
  const before = cluster.handled.get(run.runId) ?? 0;
  cluster.cutConnections();
  await expect.poll(() => cluster.handled.get(run.runId)).toBeGreaterThan(before);
  expect(calls()).toBe(1);
  answer();
  expect(await run.result()).toMatchObject({ status: "completed", output: "paid" });
  expect(calls()).toBe(1);
});

test("a Restate endpoint that other machines reach needs an identity key, and refuses a malformed key", async () => {
  const ingressUrl = "http://127.0.0.1:8080";
  for (const host of ["0.0.0.0", "::", "192.168.1.2", "worker.example"])
    expect(() => restate({ ingressUrl, listen: { host, port: 0 } })).toThrow(
      `cannot listen at ${host} without an identity key`,
    );
  for (const host of ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
    restate({ ingressUrl, listen: { host, port: 0 } });
  restate({ ingressUrl, listen: { host: "0.0.0.0", port: 0 }, identityKeys: [signing?.identityKey ?? ""] });
  expect(() => restate({ ingressUrl, identityKeys: [""] })).toThrow("expected a list of public keys");
  const engine = restate({ ingressUrl, listen: { port: 0 }, identityKeys: ["publickeyv1_wrong"] });
  await expect(createRuntime({ store: "memory:", engine })).rejects.toThrow(
    'invalid identityKeys "publickeyv1_wrong"',
  );
});
