import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { expect, inject, onTestFinished, test } from "vitest";
import { Fault, type RunId } from "../../src/kernel/index.ts";
import { createRuntime } from "../../src/runtime/local-runtime.ts";
import { sha256 } from "../../src/runtime/process/sha256.ts";
import { postgresStore } from "../../src/runtime/stores/postgres/index.ts";
import { idleEngine } from "../../src/surfaces/cli/serve/idle-engine.ts";
import { CountingServer, traceRun, WorkerProcess } from "../../src/testing/index.ts";
import { crashServer, openCrashStore } from "../crash/crash-store.ts";
import { errandRun } from "../crash/porter.ts";
import { untilEvent } from "../crash/until-event.ts";
import { toolAnswer } from "../crash/workload.ts";
import { FaultyProxy } from "../scale/faulty-proxy.ts";
import { fleetAgents, fleetRun, seats } from "../scale/fleet-agents.ts";
import { runFleet, type FleetWorld } from "../scale/fleet.ts";
import { newSchema, query } from "./schemas.ts";
import { PostgresServer } from "./server.ts";

const script = new URL("fleet-worker.mjs", inject("crashWorkers"));
const leaseMs = 1_000;
const workers = 4;
/** `npm run test:soak` sets it. */
const runs = Number(process.env["REEVE_FLEET_RUNS"] ?? 50);
const seed = Number(process.env["REEVE_FLEET_SEED"] ?? 24);

/** Four places for workers of the local engine, each behind a proxy before one PostgreSQL server that may be killed. */
async function postgresWorld(): Promise<FleetWorld> {
  const server = await PostgresServer.start();
  onTestFinished(() => server.stop());
  const schema = newSchema();
  const { hostname, port } = new URL(server.url);
  const proxies = await Promise.all(
    Array.from({ length: workers }, () => FaultyProxy.open(hostname, Number(port))),
  );
  onTestFinished(async () => {
    for (const proxy of proxies) await proxy.close();
  });
  const urlOf = (place: number): string => server.url.replace(`:${port}/`, `:${proxies[place]?.port}/`);
  const store = await postgresStore({ url: server.url, schema, hash: sha256, retryForMs: 30_000 });
  const runtime = await createRuntime({ store, engine: idleEngine, onError: () => undefined });
  onTestFinished(() => runtime.close());
  const [clerk] = fleetAgents({ url: "http://127.0.0.1:9", caller: "submitter" });
  const answered = new Set<string>();
  return {
    script,
    leaseMs,
    store,
    orders: (place) => ({ url: urlOf(place), schema, leaseMs }),
    submit: (runId) => runtime.submit(clerk, "go", { runId, spawnBudget: { maxAgents: seats } }),
    approveAll: async () => {
      const { approvals } = await store.journal.approvals({ limit: 500 });
      for (const { runId, approvalId } of approvals) {
        const id = `${runId} ${approvalId}`;
        if (answered.has(id)) continue;
        try {
          await (await runtime.find(runId))?.approve(approvalId, { decision: "approved", by: "a person" });
        } catch (error) {
          // An answer whose outcome was unknown has arrived.
          if (Fault.from(error).code !== "already_exists") throw error;
        }
        answered.add(id);
      }
    },
    ownerOf: (runId) => ownerIn(server.url, schema, runId),
    disturb: (place, fault) => {
      const proxy = proxies[place];
      proxy?.disturb(fault);
      return () => proxy?.heal();
    },
    restartServers: async () => {
      await server.kill();
      await server.restart();
    },
  };
}

test(
  "J3, J6, B3, E1, H4: four workers that are killed, stopped and disconnected, on a database that restarts, complete all runs exactly",
  { timeout: Math.max(240_000, runs * 2_000) },
  async () => {
    const report = await runFleet(await postgresWorld(), {
      seed,
      runs,
      workers,
      faults: Math.max(7, Math.round(runs / 10)),
    });
    expect(report.broken, `seed ${seed}, faults: ${report.faults.join(", ")}`).toEqual([]);
  },
);

test.for([60_000, -60_000])(
  "a worker whose clock is wrong by %i ms is refused and leaves no registration, and one with the right clock starts",
  { timeout: 120_000 },
  async (skewMs) => {
    const world = await sharedWorld();
    const wrong = WorkerProcess.start(script, world.orders({ skewMs, caller: "wrong" }), world.cache);
    const end = await wrong.endWithin(60_000);
    expect(end).toEqual({
      kind: "failed",
      reason: expect.stringContaining("the clock of this machine differs by 60 s"),
    });
    expect(await query(`SELECT 1 FROM ${world.schema}.workers`)).toEqual([]);
    const right = WorkerProcess.start(script, world.orders({ skewMs: 0, caller: "right" }), world.cache);
    onTestFinished(() => right.signal("SIGKILL"));
    await right.hasSaid("ready", 60_000);
    right.signal("SIGTERM");
    expect(await right.endWithin(60_000)).toMatchObject({ kind: "finished" });
  },
);

test(
  "J3, L2: a worker that is stopped past its lease and continued writes nothing more and starts no further call",
  { timeout: 120_000 },
  async () => {
    process.env[crashServer] = inject("postgresUrl");
    const folder = await mkdtemp(join(tmpdir(), "reeve-zombie-"));
    const file = join(folder, "store.db");
    const server = await CountingServer.open();
    const carries = Promise.withResolvers<void>();
    const book = server.book("zombie", ({ name, body }) => ({
      ...toolAnswer(name, body),
      ...(name === "carry" && { hold: () => carries.promise }),
    }));
    const serving = new URL("serving-worker.mjs", inject("crashWorkers"));
    const start = (caller: string, count: number): WorkerProcess => {
      const orders = {
        file,
        workload: "porter",
        data: count,
        death: null,
        server: { url: book.url, caller },
      };
      const worker = WorkerProcess.start(serving, orders, join(folder, "compiled"));
      onTestFinished(async () => {
        worker.signal("SIGKILL");
        await worker.ended;
      });
      return worker;
    };
    onTestFinished(async () => {
      await server.close();
      await rm(folder, { recursive: true, force: true });
    });
    const store = await openCrashStore(file);
    onTestFinished(() => store.close());
    const runId = errandRun("zombie", 0);
    const made = (): readonly string[] => book.calls.map(({ caller, name }) => `${caller} ${name}`);
    const zombie = start("zombie", 1);
    await book.until(() => made().includes("zombie carry"), 60_000);
    zombie.signal("SIGSTOP");
    start("heir", 0);
    await book.until(() => made().includes("heir carry"), 60_000);
    carries.resolve();
    await untilEvent(store, runId, ({ type }) => type === "run_end", AbortSignal.timeout(60_000));
    const before = await traceRun(store, runId);
    zombie.signal("SIGCONT");
    await zombie.hasSaid("lease_lost", 60_000);
    expect(made()).toEqual(["zombie lift", "zombie carry", "heir carry", "heir drop"]);
    expect(await traceRun(store, runId)).toEqual(before);
    expect(before).toMatchObject({ status: "completed", output: "done", chain: { ok: true } });
  },
);

/** The worker that owns a run. Rejects with `store_unavailable` while the server is away. */
async function ownerIn(url: string, schema: string, runId: RunId): Promise<string | null> {
  const client = new Client({ connectionString: url });
  client.on("error", () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query<{ readonly owner: string | null }>(
      `SELECT owner FROM ${schema}.runs WHERE run_id = $1`,
      [runId],
    );
    return rows[0]?.owner ?? null;
  } catch (error) {
    throw new Fault("store_unavailable", "the owner cannot be read", { cause: error });
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** A schema of the shared server, with orders for single workers. */
async function sharedWorld() {
  const schema = newSchema();
  const cache = await mkdtemp(join(tmpdir(), "reeve-clock-"));
  onTestFinished(() => rm(cache, { recursive: true, force: true }));
  return {
    schema,
    cache,
    orders: ({ skewMs, caller }: { readonly skewMs: number; readonly caller: string }) => ({
      file: "",
      workload: String(fleetRun(0)),
      data: { url: inject("postgresUrl"), schema, leaseMs, skewMs },
      death: null,
      server: { url: "http://127.0.0.1:9", caller },
    }),
  };
}
