import { describe, expect, test } from "vitest";
import { createRuntime } from "../../src/runtime/local-runtime.ts";
import { LocalEngine } from "../../src/runtime/worker/local-engine.ts";
import { engineContract, type EngineHarness } from "../../src/testing/contracts/index.ts";
import { removeStoresAfterEach, twoStores } from "../runtime/two-stores.ts";
import { isOfEngine, sampleOf } from "../effort.ts";
import { assembledCases } from "./assembled-cases.ts";
import { roundRobinEngine } from "./round-robin-engine.ts";
import type { EngineFactory } from "../../src/kernel/index.ts";

removeStoresAfterEach();

const engines: Readonly<Record<string, EngineFactory>> = {
  local: (port) => new LocalEngine(port),
  "round robin": roundRobinEngine,
};

for (const [name, engine] of Object.entries(engines))
  for (const [index, [store, prepare]] of twoStores.entries())
    describe(`${name} engine, ${store} store`, () => {
      const harness: EngineHarness = {
        // An engine uses all stores in the same way, so that two of them share the sample for the second engine.
        test: name === "local" ? test : sampleOf(test, isOfEngine, { part: index, parts: 2 }),
        expect,
        engine,
        hostsPrograms: name === "local",
        prepare,
        open: (opened, factory, workerId, { group: _group, ...options } = {}) =>
          createRuntime({
            store: opened,
            engine: factory,
            workerId,
            pollMs: 50,
            suspendAfterMs: 0,
            onError: () => undefined,
            ...options,
          }),
      };
      engineContract(harness);
      assembledCases(harness);
    });
