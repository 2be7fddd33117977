import { createRuntime } from "../../src/runtime/local-runtime.ts";
import { sha256 } from "../../src/runtime/process/sha256.ts";
import { postgresStore } from "../../src/runtime/stores/postgres/store.ts";
import { runWorkerDuty } from "../../src/testing/worker-duty.ts";
import { fleetAgents } from "../scale/fleet-agents.ts";
import type { FleetWorkerData } from "../scale/fleet.ts";
import { siteEngine } from "./site-engine.ts";
import { price } from "./workload.ts";

/** Hosts the agents of a fleet on a PostgreSQL store until the process receives SIGTERM. */
await runWorkerDuty(async ({ server, data }) => {
  const { url, schema, leaseMs, skewMs = 0, site } = data as unknown as FleetWorkerData;
  // A machine whose clock is wrong. The monotonic clock is not affected.
  const realNow = Date.now;
  Date.now = () => realNow() + skewMs;
  const store = await postgresStore({
    url,
    schema,
    hash: sha256,
    connections: 4,
    leaseMs,
    pollMs: 100,
    timeoutMs: leaseMs * 3,
    retryForMs: leaseMs * 3,
  });
  const runtime = await createRuntime({
    store,
    ...(site !== undefined && { engine: siteEngine(site) }),
    workerId: server.caller,
    prices: { find: () => price },
    suspendAfterMs: 50,
    pollMs: 100,
    onError: (error) => process.stderr.write(`${error.code}: ${error.message}\n`),
  });
  for (const agent of fleetAgents(server)) runtime.register(agent);
  const stayAlive = setInterval(() => undefined, 60_000);
  const stopped = new Promise((resolve) => process.once("SIGTERM", resolve));
  process.stderr.write("ready\n");
  await stopped;
  clearInterval(stayAlive);
  await runtime.close();
  return [];
});
