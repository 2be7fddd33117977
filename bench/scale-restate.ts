import { createServer } from "node:http2";
import { mkdtemp, rm } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createEndpointHandler, service, type Context } from "@restatedev/restate-sdk";
import { openRuntime, openStore, sha256 } from "reeve";
import type { Store } from "reeve/kernel";
import { postgresStore } from "reeve/postgres";
import { restate, RestateAdmin } from "reeve/restate";
import { RestateServer } from "../test/restate/server.ts";
import { WorkerSite } from "../test/restate/worker-site.ts";
import { median, type Row } from "./row.ts";
import { kilobyte, timeSteps } from "./scale-steps.ts";
import { takeOver } from "./scale-take-over.ts";

const rounds = 5;
const bareService = "bare-steps";

/**
 * Steps per second of runs that Restate distributes, against a Restate service that records the same results itself, and the
 * time until the runs of a dead worker continue.
 */
export async function* restateRows(url: string): AsyncIterable<Row> {
  const server = await RestateServer.start({ signs: true });
  const folder = await mkdtemp(join(tmpdir(), "reeve-scale-"));
  try {
    for (const store of ["PostgreSQL", "SQLite"] as const)
      for (const [runs, each] of [
        [1, 200],
        [16, 50],
      ] as const) {
        const open = () =>
          store === "SQLite"
            ? openStore(`sqlite:${join(folder, `${runs}.db`)}`)
            : postgresStore({ url, schema: "restate", hash: sha256 });
        yield await steps(server, { store, open }, runs, each);
      }
    const site = await WorkerSite.open(server);
    yield await takeOver({
      engine: "Restate and PostgreSQL",
      url,
      leaseMs: 15_000,
      kills: 3,
      goal: 3,
      site: site.address(0),
    });
    await site.close();
  } finally {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

interface NamedStore {
  readonly store: string;
  readonly open: () => Promise<Store>;
}

async function steps(
  server: RestateServer,
  { store, open }: NamedStore,
  runs: number,
  each: number,
): Promise<Row> {
  const admin = new RestateAdmin(server.adminUrl);
  const engine = restate({
    ingressUrl: server.ingressUrl,
    listen: { port: 0 },
    service: `runs-${store}-${runs}`,
    onListen: async (port) => void (await admin.deploy(`http://127.0.0.1:${port}`)),
  });
  const runtime = await openRuntime({ store: await open(), engine });
  const bare = createServer(createEndpointHandler({ services: [stepService()], logger: () => undefined }));
  await new Promise<void>((resolve) => {
    bare.listen(0, "127.0.0.1", resolve);
  });
  await admin.deploy(`http://127.0.0.1:${(bare.address() as AddressInfo).port}`);
  const [ours, floor]: [number[], number[]] = [[], []];
  for (let round = 0; round <= rounds; round++) {
    ours.push(await timeSteps(runtime, `restate-${runs}-${round}`, runs, each));
    floor.push(await bareSteps(server.ingressUrl, runs, each));
  }
  await runtime.close();
  bare.close();
  return {
    name: `Restate and ${store}: steps of 1 KB, ${runs} run${runs === 1 ? "" : "s"} at once, against a bare Restate service`,
    // The first round compiles the code.
    value: median(ours.slice(1)),
    unit: "steps/s",
    against: median(floor.slice(1)),
    goal: { atLeast: 2 },
  };
}

function stepService() {
  return service({
    name: bareService,
    handlers: {
      work: async (ctx: Context, count: number) => {
        for (let index = 0; index < count; index++) await ctx.run("work", async () => kilobyte);
        return "done";
      },
    },
  });
}

/** Calls the service so many times at once, each with so many steps. */
async function bareSteps(ingressUrl: string, runs: number, each: number): Promise<number> {
  const began = performance.now();
  const call = async (): Promise<void> => {
    const answer = await fetch(`${ingressUrl}/${bareService}/work`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: String(each),
    });
    if (!answer.ok) throw new Error(`the bare service answered ${answer.status}: ${await answer.text()}`);
  };
  await Promise.all(Array.from({ length: runs }, call));
  return (runs * each) / ((performance.now() - began) / 1_000);
}
