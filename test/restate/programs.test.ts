import { afterAll, beforeAll, describe, inject, onTestFinished } from "vitest";
import { restate } from "../../src/assembly/restate.ts";
import { crashServer } from "../crash/crash-store.ts";
import { isFull } from "../effort.ts";
import { programCases } from "../scale/program-cases.ts";
import { RestateServer } from "./server.ts";
import { WorkerSite } from "./worker-site.ts";

describe.runIf(isFull)("random programs with the Restate engine", () => {
  let server: RestateServer;
  beforeAll(async () => {
    server = await RestateServer.start({ signs: true });
    process.env[crashServer] = inject("postgresUrl");
  });
  afterAll(() => server.stop());

  programCases(100, async () => {
    const site = await WorkerSite.open(server);
    onTestFinished(() => site.close());
    return {
      addressOf: (place) => ({ ...site.address(place), sliceMs: 2_000 }),
      caller: restate({ ingressUrl: server.ingressUrl, service: site.service }),
    };
  });
});
