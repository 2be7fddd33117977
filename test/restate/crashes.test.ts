import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { runCrashes } from "../../src/testing/index.ts";
import { crashLease, crashServer, crashSite, openCrashStore } from "../crash/crash-store.ts";
import { isComplete, killPoints } from "../crash/kill-points.ts";
import { workloads } from "../crash/workloads/index.ts";
import { CaseSites } from "./case-sites.ts";
import { RestateServer } from "./server.ts";

let server: RestateServer;
let sites: CaseSites;

beforeAll(async () => {
  server = await RestateServer.start();
  sites = await CaseSites.open(server);
  process.env[crashSite] = JSON.stringify(sites.address);
  process.env[crashServer] = inject("postgresUrl");
  // A dead worker counts as alive for an hour, so that only Restate finds that it is dead.
  process.env[crashLease] = "3600000";
});
afterAll(async () => {
  await sites.close();
  await server.stop();
});

const isKillPoint = killPoints();

/** A timer, which Restate keeps. `npm run test:crash -- --project restate` kills at every write of more workloads. */
const chosen = isComplete
  ? ["toolLoop", "approval", "spawnTree", "sleep", "largeValues", "tenants"]
  : ["sleep"];

describe.each(chosen)("Restate, J1, J6, B1, B3, E1, E4, H1, H4, L15: %s", (workload) => {
  test("a worker killed before or after writes that differ in kind leaves a run that ends as without the crash", async () => {
    const { world, outputs } = workloads[workload] ?? {};
    const report = await runCrashes({
      worker: new URL("worker.mjs", inject("crashWorkers")),
      open: openCrashStore,
      workload,
      kills: isKillPoint,
      ...world,
    } as Parameters<typeof runCrashes>[0]);
    expect(report).toMatchObject({ broken: [], outputs });
    expect(report.cases).toBeGreaterThan(1);
  });
});
