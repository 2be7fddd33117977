import { afterAll, beforeAll, inject } from "vitest";
import { crashLease, crashServer, crashSite } from "../crash/crash-store.ts";
import { describeKillPoints } from "../crash/kill-point-cases.ts";
import { CaseSites } from "./case-sites.ts";
import { RestateServer } from "./server.ts";

let server: RestateServer;
let sites: CaseSites;

beforeAll(async () => {
  server = await RestateServer.start({ signs: true });
  sites = await CaseSites.open(server);
  process.env[crashSite] = JSON.stringify(sites.address);
  process.env[crashServer] = inject("postgresUrl");
  // The lease of a dead worker is valid for an hour, so that only the end of its process, which is known, frees its runs.
  process.env[crashLease] = "3600000";
});
afterAll(async () => {
  for (const name of [crashSite, crashLease]) delete process.env[name];
  await sites.close();
  await server.stop();
});

// A timer, which Restate keeps. `npm run test:crash -- --project restate` kills at every write of more workloads.
describeKillPoints("Restate, J1, J6, B1, B3, E1, E4, H1, H4, L15", ["sleep"]);
