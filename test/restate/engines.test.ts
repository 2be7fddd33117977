import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from "vitest";
import type { EngineFactory } from "../../src/kernel/index.ts";
import { createRuntime } from "../../src/runtime/local-runtime.ts";
import { sha256 } from "../../src/runtime/process/sha256.ts";
import { restate } from "../../src/runtime/engines/restate/index.ts";
import { postgresStore } from "../../src/runtime/stores/postgres/index.ts";
import { sqliteStore } from "../../src/runtime/stores/sqlite/store.ts";
import { engineContract, type EngineHarness } from "../../src/testing/contracts/index.ts";
import { assembledCases } from "../contract/assembled-cases.ts";
import { isFull, isOfEngine, sampleOf } from "../effort.ts";
import { emptySchema, newSchema } from "../postgres/schemas.ts";
import { newCluster, type Cluster } from "./cluster.ts";
import { RestateServer } from "./server.ts";

let server: RestateServer;
/** The workers of the current case, by the agents that they host: each group has a service of its own in Restate. */
const clusters = new Map<string, Cluster>();

beforeAll(async () => {
  server = await RestateServer.start();
});
afterAll(() => server.stop());

const engine: EngineFactory = (port) => restate({ ingressUrl: server.ingressUrl })(port);

const open: EngineHarness["open"] = async (store, factory, workerId, options = {}) => {
  const { group = "all", ...settings } = options;
  const cluster = clusters.get(group) ?? (await newCluster(server));
  clusters.set(group, cluster);
  return createRuntime({
    store,
    engine: factory === engine ? cluster.engine : factory,
    workerId,
    pollMs: 200,
    suspendAfterMs: 0,
    onError: () => undefined,
    ...settings,
  });
};

async function prepareSqlite(): ReturnType<EngineHarness["prepare"]> {
  clusters.clear();
  const folder = await mkdtemp(join(tmpdir(), "reeve-restate-store-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
  return () => sqliteStore({ path: join(folder, "store.db"), hash: sha256, watchEveryMs: 5 });
}

const schema = newSchema();

async function preparePostgres(): ReturnType<EngineHarness["prepare"]> {
  clusters.clear();
  await emptySchema(schema);
  const url = inject("postgresUrl");
  return () => postgresStore({ url, schema, hash: sha256, connections: 2, watchEveryMs: 50 });
}

/** The engine uses both stores in the same way, so `npm test` checks only one of them. */
const stores = { PostgreSQL: preparePostgres, ...(isFull && { SQLite: prepareSqlite }) };

describe.each(Object.entries(stores))("Restate engine, %s store", (_name, prepare) => {
  // The local engine runs the other half of the sample on PostgreSQL.
  const declare = sampleOf(test, isOfEngine, { part: 1, parts: 2 });
  const harness: EngineHarness = { test: declare, expect, engine, prepare, open };
  engineContract(harness);
  assembledCases(harness);
});
