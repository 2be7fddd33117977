import { afterAll, afterEach, beforeAll, beforeEach, describe, inject, onTestFinished } from "vitest";
import { crashLoopCases, crashLoopCore } from "../crash/crash-loop-cases.ts";
import { crashLease, crashServer } from "../crash/crash-store.ts";
import { isFull } from "../effort.ts";
import { onDeadlySite, type DeadlySite } from "../crash/deadly-site.ts";
import { FaultyProxy } from "../scale/faulty-proxy.ts";
import { cutCase, cutPlace, soakCases, type CutPlace } from "../scale/soak-cases.ts";
import { RestateServer } from "./server.ts";
import { WorkerSite } from "./worker-site.ts";

let server: RestateServer;

beforeAll(async () => {
  server = await RestateServer.start({ signs: true });
  process.env[crashServer] = inject("postgresUrl");
  // The lease of a dead worker is valid for an hour. Its process is known to have ended, and the slices are signed.
  process.env[crashLease] = "3600000";
});
afterAll(async () => {
  delete process.env[crashLease];
  await server.stop();
});

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

/** Two places whose workers reach the database and Restate through proxies, and are reached by Restate through one. */
async function cutPlaces(): Promise<readonly CutPlace[]> {
  const endpoints = new Map<number, FaultyProxy>();
  const workers = await WorkerSite.open(server, {
    through: async (place, port) => {
      const endpoint = await FaultyProxy.open("127.0.0.1", port);
      endpoints.set(place, endpoint);
      return endpoint.port;
    },
  });
  onTestFinished(async () => {
    await workers.close();
    for (const endpoint of endpoints.values()) await endpoint.close();
  });
  const { hostname, port } = new URL(server.ingressUrl);
  const places = [0, 1].map(async (place): Promise<CutPlace> => {
    const { databaseUrl, links } = await cutPlace(inject("postgresUrl"));
    const ingress = await FaultyProxy.open(hostname, Number(port));
    onTestFinished(() => ingress.close());
    const address = workers.address(place, `http://127.0.0.1:${ingress.port}`);
    const endpoint = (): readonly FaultyProxy[] => [endpoints.get(place) ?? []].flat();
    return { databaseUrl, address, links: () => [...links(), ingress, ...endpoint()] };
  });
  return Promise.all(places);
}

describe("lost networks with the Restate engine", () => {
  // The worker that was cut off lives, so that its run is free only when its lease has expired.
  beforeEach(() => {
    delete process.env[crashLease];
  });
  cutCase("Restate and the database", cutPlaces);
});
