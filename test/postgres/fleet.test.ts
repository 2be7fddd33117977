import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, inject, onTestFinished, test } from "vitest";
import { idleEngine } from "../../src/surfaces/cli/setup/idle-engine.ts";
import { WorkerProcess } from "../../src/testing/index.ts";
import { crashServer } from "../crash/crash-store.ts";
import { isFull } from "../effort.ts";
import { FaultyProxy } from "../scale/faulty-proxy.ts";
import { branches, fleetRun } from "../scale/fleet-agents.ts";
import { runFleet, type FleetWorld } from "../scale/fleet.ts";
import { fleetCaller } from "../scale/postgres-fleet.ts";
import { noTrace, wakeZombie } from "../scale/zombie.ts";
import { newSchema, query } from "./schemas.ts";
import { PostgresServer } from "./server.ts";

const script = new URL("fleet-worker.mjs", inject("crashWorkers"));
const workers = 4;
const runs = 1_000;
/** Lease of the workers. With many runs, a worker on a slow machine may be silent for a second. */
const leaseMs = isFull ? 3_000 : 1_000;
/** Time after which the fleet counts as hanging, in milliseconds. */
const hangsAfterMs = runs * 2_000;
const seed = Number(process.env["REEVE_FLEET_SEED"] ?? 24);

/** Four places for workers of the local engine, each behind a proxy before one PostgreSQL server that may be killed. */
async function postgresWorld(): Promise<FleetWorld> {
  // Workers that connect while the server starts would fill the output.
  const server = await PostgresServer.start({ settings: ["log_min_messages=panic"] });
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
  return {
    ...(await fleetCaller({ url: server.url, schema, engine: idleEngine })),
    script,
    leaseMs,
    orders: (place) => ({ url: urlOf(place), schema, leaseMs }),
    disturb: (place, fault) => {
      const proxy = proxies[place];
      proxy?.disturb(fault);
      return { keepsLease: false, heal: () => proxy?.heal() };
    },
    cuts: () => proxies.reduce((sum, { cuts }) => sum + cuts, 0),
    restart: {
      PostgreSQL: async () => {
        await server.kill();
        await server.restart();
      },
    },
  };
}

// In `npm test` workers are killed by `crashes.test.ts` and stopped below, and `faults.test.ts` restarts the server.
test.runIf(isFull)(
  "J3, J6, B3, E1, H4: four PostgreSQL workers that are killed, stopped and disconnected complete all runs exactly",
  { timeout: hangsAfterMs + 60_000 },
  async () => {
    const report = await runFleet(await postgresWorld(), {
      seed,
      runs,
      workers,
      hangsAfterMs,
      faults: runs / 20,
    });
    expect(report.broken, `seed ${seed}, faults: ${report.faults.join(", ")}`).toEqual([]);
    // Each fault of a worker makes another one take over a run and repeat the call that the worker was in.
    expect(report.hits).toBeGreaterThanOrEqual(5);
    expect(report.takeOvers).toBeGreaterThanOrEqual(report.hits);
    expect(report.repeated).toBeGreaterThanOrEqual(report.hits);
    // A worker may start one more call in each branch of each run that it lost.
    expect(report.late).toBeLessThanOrEqual(branches * report.takeOvers);
    expect(report.cuts).toBeGreaterThan(0);
  },
);

test.for(isFull ? [60_000, -60_000] : [60_000])(
  "a PostgreSQL worker whose clock is wrong by %i ms is refused and not registered, and one with the right clock starts",
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

// With the Restate engine, `npm test` runs the other case.
test.for(
  isFull ? (["ended the run", "claimed the run and written nothing"] as const) : (["ended the run"] as const),
)(
  "J3, L2: a PostgreSQL worker that is stopped past its lease while its successor has %s writes nothing more when it continues",
  { timeout: 120_000 },
  async (heirHas) => {
    process.env[crashServer] = inject("postgresUrl");
    const report = await wakeZombie(heirHas);
    expect(report.after).toEqual(report.before);
    expect(report).toMatchObject(noTrace(heirHas));
  },
);

/** A schema of the shared server, with orders for single workers. */
async function sharedWorld() {
  const schema = newSchema();
  const cache = await mkdtemp(join(tmpdir(), "reeve-clock-"));
  onTestFinished(() => rm(cache, { recursive: true, force: true, maxRetries: 10 }));
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
