import { expect, test } from "vitest";
import type { EngineFactory } from "../../../src/kernel/index.ts";
import { setUp } from "../runtime-setup.ts";

/** An engine of a kind that executes no run. */
function engineOf(kind: string | null): EngineFactory {
  return () => ({
    kind,
    start: async () => undefined,
    wake: () => undefined,
    agentsChanged: () => undefined,
    stop: async () => undefined,
  });
}

test("G5: an engine without a kind opens a store of any kind, and the first worker of a new store sets the kind", async () => {
  const { store, open, runtime } = await setUp({ engine: engineOf(null) });
  expect(await store.records.get({ namespace: "engine", key: "kind" })).toBeUndefined();
  const worker = await open({ engine: engineOf("other") });
  expect(await store.records.get({ namespace: "engine", key: "kind" })).toMatchObject({ value: "other" });
  const visitor = await open({ engine: engineOf(null) });
  await expect(open({ engine: engineOf("local") })).rejects.toMatchObject({ code: "engine_mismatch" });
  for (const each of [runtime, worker, visitor]) await each.close();
});
