import { formatRunId } from "../../src/kernel/index.ts";
import { systemClock } from "../../src/runtime/process/system-sources.ts";
import { createRuntime } from "../../src/runtime/local-runtime.ts";
import { sha256 } from "../../src/runtime/index.ts";
import { sqliteStore } from "../../src/runtime/stores/sqlite/store.ts";
import { runWorkerDuty } from "../../src/testing/worker-duty.ts";
import { moneyAgents, price } from "./money-world.ts";
import type { CappedWork } from "./capped-work.ts";

/**
 * Submits its runs, or finds them in the store, under caps that several processes share. Works until the runs have
 * ended. The day of its clock never changes.
 */
await runWorkerDuty(async ({ file, server, data, mortal }) => {
  const { runs, caps, startedAt, noon } = data as unknown as CappedWork;
  const now = (): number => noon + systemClock.now() - startedAt;
  const runtime = await createRuntime({
    store: mortal(await sqliteStore({ path: file, hash: sha256, durability: "normal", watchEveryMs: 20 })),
    clock: { now, schedule: (at, tell) => systemClock.schedule(at - noon + startedAt, tell) },
    prices: { find: () => price },
    retry: { baseDelayMs: 1, maxDelayMs: 5, maxRetries: 3 },
    concurrency: 8,
    pollMs: 20,
    caps,
    onError: (error) => process.stderr.write(`${error.code}: ${error.message}\n`),
  });
  const lead = moneyAgents(server);
  const handles = await Promise.all(
    runs.map(({ name, userId }, index) =>
      runtime.submit(lead, index, { runId: formatRunId(name), userId, spawnBudget: { maxAgents: 3 } }),
    ),
  );
  await Promise.all(handles.map((handle) => handle.result()));
  await runtime.close();
  return handles.map(({ runId }) => runId);
});
