import { afterAll, beforeAll, expect, inject, onTestFinished, test } from "vitest";
import { restate } from "../../src/assembly/restate.ts";
import { newSchema } from "../postgres/schemas.ts";
import { PostgresServer } from "../postgres/server.ts";
import { crashServer, crashSite } from "../crash/crash-store.ts";
import { isFull } from "../effort.ts";
import { FaultyProxy } from "../scale/faulty-proxy.ts";
import { branches } from "../scale/fleet-agents.ts";
import { runFleet, type FleetWorld } from "../scale/fleet.ts";
import { fleetCaller } from "../scale/postgres-fleet.ts";
import { noTrace, wakeZombie } from "../scale/zombie.ts";
import { RestateServer } from "./server.ts";
import { WorkerSite } from "./worker-site.ts";

const workers = 4;
const runs = 1_000;
/** Lease of the workers. With many runs, a worker on a slow machine may be silent for a second. */
const leaseMs = isFull ? 3_000 : 1_000;
/** Time after which the fleet counts as hanging, in milliseconds. */
const hangsAfterMs = runs * 2_000;
const seed = Number(process.env["REEVE_FLEET_SEED"] ?? 24);

let server: RestateServer;

beforeAll(async () => {
  // Restate gives up a worker that is stopped for twice the lease, and none that is only slow on a busy machine.
  server = await RestateServer.start({
    signs: true,
    keepAlive: { intervalMs: leaseMs / 4, timeoutMs: leaseMs + leaseMs / 4 },
  });
});
afterAll(() => server.stop());

/** Four places for workers of the Restate engine, each with proxies to Restate, from Restate and to the database. */
async function restateWorld(): Promise<FleetWorld> {
  // Workers that connect while the server starts would fill the output.
  const database = await PostgresServer.start({ settings: ["log_min_messages=panic"] });
  onTestFinished(() => database.stop());
  const { url } = database;
  const schema = newSchema();
  /** All proxies, also those before workers that are dead. */
  const proxies: FaultyProxy[] = [];
  const proxyTo = async (address: string): Promise<FaultyProxy> => {
    const { hostname, port } = new URL(address);
    const proxy = await FaultyProxy.open(hostname, Number(port));
    onTestFinished(() => proxy.close());
    proxies.push(proxy);
    return proxy;
  };
  const places = await Promise.all(
    Array.from({ length: workers }, async () => ({
      toDatabase: await proxyTo(url),
      ingress: await proxyTo(server.ingressUrl),
    })),
  );
  /** The proxies before the workers that live. */
  const endpoints = new Map<number, FaultyProxy>();
  const site = await WorkerSite.open(server, {
    through: async (place, port) => {
      await endpoints.get(place)?.close();
      const endpoint = await FaultyProxy.open("127.0.0.1", port);
      endpoints.set(place, endpoint);
      proxies.push(endpoint);
      return endpoint.port;
    },
  });
  onTestFinished(async () => {
    await site.close();
    for (const endpoint of endpoints.values()) await endpoint.close();
  });
  const engine = restate({ ingressUrl: server.ingressUrl, service: site.service });
  let disturbances = 0;
  return {
    ...(await fleetCaller({ url, schema, engine })),
    script: new URL("fleet-worker.mjs", inject("crashWorkers")),
    leaseMs,
    orders: (place) => {
      const { toDatabase, ingress } = places[place] ?? {};
      const address = site.address(place, `http://127.0.0.1:${ingress?.port}`);
      return {
        url: url.replace(`:${new URL(url).port}/`, `:${toDatabase?.port}/`),
        schema,
        leaseMs,
        site: { ...address, sliceMs: 500 },
      };
    },
    disturb: (place, fault) => {
      const { toDatabase, ingress } = places[place] ?? {};
      // A worker without Restate that reaches the store keeps its runs. Then a worker without both.
      const keepsLease = disturbances++ % 2 === 0;
      const links = [ingress, endpoints.get(place), ...(keepsLease ? [] : [toDatabase])];
      for (const link of links) link?.disturb(fault);
      const heal = (): void => {
        for (const link of links) link?.heal();
      };
      return { keepsLease, heal };
    },
    cuts: () => proxies.reduce((sum, { cuts }) => sum + cuts, 0),
    restart: {
      Restate: async () => {
        await server.kill();
        await server.resume();
      },
      PostgreSQL: async () => {
        await database.kill();
        await database.restart();
      },
    },
  };
}

// In `npm test` workers are killed by `crashes.test.ts` and stopped below, and `slices.test.ts` loses messages of Restate.
test.runIf(isFull)(
  "J3, J6, B3, E1, H4: four Restate workers that are killed, stopped and disconnected complete all runs exactly",
  { timeout: hangsAfterMs + 60_000 },
  async () => {
    const report = await runFleet(await restateWorld(), {
      seed,
      runs,
      workers,
      hangsAfterMs,
      faults: runs / 20,
    });
    expect(report.broken, `seed ${seed}, faults: ${report.faults.join(", ")}`).toEqual([]);
    // Each fault of a worker that loses its lease makes another one take over a run and repeat the call that the worker was in.
    expect(report.hits + report.kept).toBeGreaterThanOrEqual(5);
    expect(report.hits).toBeGreaterThanOrEqual(3);
    expect(report.kept).toBeGreaterThanOrEqual(1);
    expect(report.takeOvers).toBeGreaterThanOrEqual(report.hits);
    expect(report.repeated).toBeGreaterThanOrEqual(report.hits);
    // A worker may start one more call in each branch of each run that it lost.
    expect(report.late).toBeLessThanOrEqual(branches * report.takeOvers);
    expect(report.cuts).toBeGreaterThan(0);
  },
);

// With the local engine, `npm test` runs the other case.
test.for(
  isFull
    ? (["ended the run", "claimed the run and written nothing"] as const)
    : (["claimed the run and written nothing"] as const),
)(
  "J3, L2: a worker that Restate gave up while its successor has %s writes nothing more when it continues",
  async (heirHas) => {
    const site = await WorkerSite.open(server);
    onTestFinished(() => site.close());
    process.env[crashSite] = JSON.stringify(site.address(0));
    onTestFinished(() => void delete process.env[crashSite]);
    process.env[crashServer] = inject("postgresUrl");
    const report = await wakeZombie(heirHas);
    expect(report.after).toEqual(report.before);
    expect(report).toMatchObject(noTrace(heirHas));
  },
);
