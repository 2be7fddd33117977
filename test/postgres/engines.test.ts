import { describe, expect, inject, test } from "vitest";
import { sha256 } from "../../src/runtime/process/sha256.ts";
import { createRuntime } from "../../src/runtime/local-runtime.ts";
import { postgresStore } from "../../src/runtime/stores/postgres/index.ts";
import { LocalEngine } from "../../src/runtime/worker/local-engine.ts";
import { engineContract, type EngineHarness } from "../../src/testing/contracts/index.ts";
import { assembledCases } from "../contract/assembled-cases.ts";
import { isOfEngine, sampleOf } from "../effort.ts";
import { emptySchema, newSchema } from "./schemas.ts";

const schema = newSchema();

// The sample of the contract is shared with the Restate engine, which uses this store.
describe("local engine, PostgreSQL store", () => {
  const harness: EngineHarness = {
    test: sampleOf(test, isOfEngine, { part: 0, parts: 2 }),
    expect,
    engine: (port) => new LocalEngine(port),
    hostsPrograms: true,
    prepare: async () => {
      await emptySchema(schema);
      const url = inject("postgresUrl");
      return () => postgresStore({ url, schema, hash: sha256, connections: 2, watchEveryMs: 50 });
    },
    open: (opened, factory, workerId, { group: _group, ...options } = {}) =>
      createRuntime({
        store: opened,
        engine: factory,
        workerId,
        pollMs: 200,
        suspendAfterMs: 0,
        onError: () => undefined,
        ...options,
      }),
  };
  engineContract(harness);
  assembledCases(harness);
});
