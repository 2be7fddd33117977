import { afterAll, afterEach, beforeAll, beforeEach, describe, inject } from "vitest";
import { crashLoopCases, crashLoopCore } from "../crash/crash-loop-cases.ts";
import { crashLease, crashServer } from "../crash/crash-store.ts";
import { isFull } from "../effort.ts";
import { onDeadlySite, type DeadlySite } from "../crash/deadly-site.ts";
import { soakCases } from "../scale/soak-cases.ts";
import { RestateServer } from "./server.ts";
import { WorkerSite } from "./worker-site.ts";

let server: RestateServer;

beforeAll(async () => {
  server = await RestateServer.start({ signs: true });
  process.env[crashServer] = inject("postgresUrl");
  // The lease of a dead worker is valid for an hour. Its process is known to have ended, and the slices are signed.
  process.env[crashLease] = "3600000";
});
afterAll(() => server.stop());

async function onRestateSite(check: (site: DeadlySite) => Promise<void>): Promise<void> {
  const workers = await WorkerSite.open(server);
  try {
    await onDeadlySite(check, workers.address(0));
  } finally {
    await workers.close();
  }
}

describe.concurrent("L15: a run that kills its process, with the Restate engine, while the lease of the dead worker is valid", () => {
  (isFull ? crashLoopCases : crashLoopCore)(onRestateSite);
});

describe("long runs with the Restate engine", () => {
  let workers: WorkerSite;
  beforeEach(async () => {
    workers = await WorkerSite.open(server);
  });
  afterEach(() => workers.close());
  soakCases((place) => workers.address(place));
});
