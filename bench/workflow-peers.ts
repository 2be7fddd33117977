import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { createEndpointHandler, workflow, type WorkflowContext } from "@restatedev/restate-sdk";
import { RestateAdmin } from "reeve/restate";
import { PostgresServer } from "../test/postgres/server.ts";
import { RestateServer } from "../test/restate/server.ts";
import { kilobyte } from "./scale-steps.ts";

/** Another engine for durable functions, on servers of this machine. */
export interface Peer {
  /** Steps per second of so many workflows at once, from their start to the last end. */
  readonly steps: (runs: number, each: number) => Promise<number>;
  readonly close: () => Promise<void>;
}

const here = (path: string): string => fileURLToPath(new URL(`peers/dbos/${path}`, import.meta.url));

/** The other engines, by the names of their rows. Each is started when it is asked for. */
export const peers: Readonly<Record<string, () => Promise<Peer>>> = {
  "DBOS on PostgreSQL": dbosPeer,
  Restate: restatePeer,
};

/** DBOS on a PostgreSQL that does not wait for the disk. */
async function dbosPeer(): Promise<Peer> {
  if (!existsSync(here("node_modules")))
    throw new Error("the package is not installed; run npm ci --prefix bench/peers/dbos");
  const database = await PostgresServer.start();
  const child = spawn(process.execPath, [here("steps.mjs"), database.url], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async (): Promise<string> => {
    for (;;) {
      const { value, done } = await lines.next();
      if (done === true) throw new Error("DBOS has ended; its errors are above");
      if (value === "ready" || /^[\d.]+$/u.test(value)) return value;
    }
  };
  await next();
  return {
    steps: async (runs, each) => {
      child.stdin.write(`${JSON.stringify({ runs, each })}\n`);
      return Number(await next());
    },
    close: async () => {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.stdin.end();
      await ended;
      await database.stop();
    },
  };
}

/** Workflows of Restate, with the server of the tests. */
async function restatePeer(): Promise<Peer> {
  const server = await RestateServer.start();
  const name = "peer-workflow";
  const steps = workflow({
    name,
    handlers: {
      run: async (ctx: WorkflowContext, each: number) => {
        for (let index = 0; index < each; index++) await ctx.run("work", async () => kilobyte);
        return "done";
      },
    },
  });
  const endpoint = createServer(createEndpointHandler({ services: [steps], logger: () => undefined }));
  await new Promise<void>((resolve) => {
    endpoint.listen(0, "127.0.0.1", resolve);
  });
  const { port } = endpoint.address() as AddressInfo;
  await new RestateAdmin(server.adminUrl).deploy(`http://127.0.0.1:${port}`);
  let keys = 0;
  const call = async (each: number): Promise<void> => {
    const answer = await fetch(`${server.ingressUrl}/${name}/${++keys}/run`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: String(each),
    });
    if (!answer.ok) throw new Error(`Restate answered ${answer.status}: ${await answer.text()}`);
  };
  return {
    steps: async (runs, each) => {
      const began = performance.now();
      await Promise.all(Array.from({ length: runs }, () => call(each)));
      return (runs * each) / ((performance.now() - began) / 1_000);
    },
    close: async () => {
      endpoint.close();
      await server.stop();
    },
  };
}
