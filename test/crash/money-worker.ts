import { createRuntime } from "../../src/runtime/local-runtime.ts";
import { sha256 } from "../../src/runtime/index.ts";
import { sqliteStore } from "../../src/runtime/stores/sqlite/store.ts";
import { runWorkerDuty } from "../../src/testing/worker-duty.ts";
import { maxCostUsd, moneyAgents, moneyRun, price } from "./money-world.ts";

/** Submits the runs of its batch, or finds them in the store, and works until all of them have ended. */
await runWorkerDuty(async ({ file, server, data, mortal }) => {
  const { batch, runs } = data as { readonly batch: number; readonly runs: number };
  const runtime = await createRuntime({
    store: mortal(await sqliteStore({ path: file, hash: sha256, durability: "normal", watchEveryMs: 20 })),
    prices: { find: () => price },
    retry: { baseDelayMs: 1, maxDelayMs: 5, maxRetries: 3 },
    concurrency: 32,
    pollMs: 20,
    onError: (error) => process.stderr.write(`${error.code}: ${error.message}\n`),
  });
  const lead = moneyAgents(server);
  const handles = await Promise.all(
    Array.from({ length: runs }, (_, index) =>
      runtime.submit(lead, index, {
        runId: moneyRun(batch, index),
        budget: { maxCostUsd },
        spawnBudget: { maxAgents: 4 },
      }),
    ),
  );
  await Promise.all(handles.map((handle) => handle.result()));
  await runtime.close();
  return handles.map(({ runId }) => runId);
});
