import { randomUUID } from "node:crypto";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { Agent, type Runtime } from "../../../src/entries/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { idleEngine } from "../../../src/surfaces/cli/setup/idle-engine.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { isFull } from "../../effort.ts";
import { PostgresServer } from "../../postgres/server.ts";
import { env, setUp } from "./model-server.ts";
import { main, reeve } from "./reeve-process.ts";
import { startWorker, type RunningWorker } from "./worker-process.ts";

type Address = `postgres://${string}`;

let server: PostgresServer;

beforeAll(async () => {
  server = await PostgresServer.start();
});

afterAll(() => server.stop());

/** The address of a schema that no other test uses. */
function newStore(url = server.url): { readonly schema: string; readonly address: Address } {
  const schema = `t_${randomUUID().replaceAll("-", "")}`;
  return { schema, address: `${url}?schema=${schema}` as Address };
}

async function query(sql: string): Promise<void> {
  const client = new Client({ connectionString: server.url });
  await client.connect();
  await client.query(sql);
  await client.end();
}

/** Creates a role with these attributes and returns the URL with which it connects. */
async function roleUrl(attributes: string): Promise<{ readonly role: string; readonly url: string }> {
  const role = `r_${randomUUID().replaceAll("-", "")}`;
  await query(`CREATE ROLE ${role} LOGIN ${attributes}`);
  return { role, url: server.url.replace("reeve@", `${role}@`) };
}

/** A runtime that submits runs to the store and executes no run. Opening it creates the tables. */
async function caller(store: Address): Promise<Runtime> {
  const runtime = await createRuntime({ store, engine: idleEngine, onError: () => undefined });
  onTestFinished(() => runtime.close());
  return runtime;
}

async function submit(runtime: Runtime, input: string): Promise<string> {
  const agent = new Agent({ name: "assistant", model: scriptedModel([]) });
  return (await runtime.submit(agent, input, { streaming: true })).runId;
}

async function status(url: string): Promise<readonly [number, string]> {
  const response = await fetch(url);
  return [response.status, await response.text()];
}

describe("reeve worker --store postgres://", () => {
  // In `npm test` a worker on SQLite gets the signal.
  test.runIf(isFull)(
    "SIGTERM makes a PostgreSQL worker record the call in flight and release the run; the next worker repeats no call",
    async () => {
      const answer = Promise.withResolvers<{ readonly tool: string; readonly input: { path: string } }>();
      const { folder, url, asked, requests } = await setUp((request) =>
        request === 1 ? answer.promise : { text: "Green." },
      );
      const { address } = newStore();
      const start = (): Promise<RunningWorker> =>
        startWorker({ main, cwd: folder, env: env(url), args: ["--store", address] });
      const runtime = await caller(address);
      const one = await start();
      expect(await status(`${one.url}/readyz`)).toEqual([200, "ready\n"]);
      const runId = await submit(runtime, "Which colour?");
      await asked(1);
      one.signal("SIGTERM");
      await one.logged(({ event }) => event === "worker_draining");
      expect(await status(`${one.url}/readyz`)).toEqual([503, "the worker is draining\n"]);
      answer.resolve({ tool: "read", input: { path: "notes.txt" } });
      expect(await one.ended).toBe(0);
      expect(requests).toHaveLength(1);
      expect(one.lines.find(({ event }) => event === "run_released")).toMatchObject({ runId, rest: "ready" });
      const other = await start();
      expect(await (await runtime.find(runId))?.result()).toMatchObject({ output: "Green." });
      expect(requests).toHaveLength(2);
      expect(await other.logged(({ event }) => event === "run_claimed")).toMatchObject({ runId, epoch: 2 });
      other.signal("SIGTERM");
      expect(await other.ended).toBe(0);
    },
  );

  test("/readyz of a PostgreSQL worker answers 503 while the database is away and 200 when it is back, and runs continue", async () => {
    const { folder, url } = await setUp(() => ({ text: "Done." }));
    const { address } = newStore();
    await (await caller(address)).close();
    const worker = await startWorker({ main, cwd: folder, env: env(url), args: ["--store", address] });
    await server.kill();
    await vi.waitFor(async () => expect((await status(`${worker.url}/readyz`))[0]).toBe(503), {
      timeout: 120_000,
    });
    expect(await status(`${worker.url}/healthz`)).toEqual([200, "ok\n"]);
    expect((await status(`${worker.url}/metrics`))[1]).toContain("\nreeve_store_up 0\n");
    await server.restart();
    await vi.waitFor(async () => expect(await status(`${worker.url}/readyz`)).toEqual([200, "ready\n"]), {
      timeout: 120_000,
    });
    const runtime = await caller(address);
    const runId = await submit(runtime, "Hi");
    expect(await (await runtime.find(runId))?.result()).toMatchObject({ output: "Done." });
    worker.signal("SIGTERM");
    expect(await worker.ended).toBe(0);
  });

  test.for<readonly [what: string, addressOf: () => Promise<string>, code: number, text: string]>([
    [
      "no server",
      async () => "postgres://reeve:secret@127.0.0.1:1/there",
      4,
      "127.0.0.1:1/there cannot be reached",
    ],
    ["no database", async () => server.url.replace("/postgres", "/nowhere"), 3, "nowhere"],
    [
      "a role that may not create tables",
      async () => newStore((await roleUrl("")).url).address,
      8,
      "grant CREATE",
    ],
    ["a newer version", () => storeAfter((schema) => `UPDATE ${schema}.meta SET version = 999`), 4, "999"],
    ["a read-only role", readOnlyStore, 4, "read-only"],
    [
      "all connections taken",
      async () => newStore((await roleUrl("CONNECTION LIMIT 0")).url).address,
      4,
      "max_connections",
    ],
  ])(
    "reeve worker on a PostgreSQL store with %s ends with a clear fault",
    async ([, addressOf, code, text]) => {
      const { folder, url } = await setUp(() => undefined);
      const result = await reeve(["worker", "--store", await addressOf()], { cwd: folder, env: env(url) });
      expect([result.code, result.talk]).toEqual([code, expect.stringContaining(text)]);
      expect(result.talk).not.toContain("secret");
    },
  );
});

/** A store whose tables exist, after this statement. */
async function storeAfter(change: (schema: string) => string): Promise<string> {
  const { schema, address } = newStore();
  await (await caller(address)).close();
  await query(change(schema));
  return address;
}

async function readOnlyStore(): Promise<string> {
  const { role, url } = await roleUrl("SUPERUSER");
  await query(`ALTER ROLE ${role} SET default_transaction_read_only = on`);
  const address = await storeAfter(() => "SELECT 1");
  return `${url}?schema=${new URL(address).searchParams.get("schema")}`;
}
