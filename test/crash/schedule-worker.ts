import { createRuntime } from "../../src/runtime/local-runtime.ts";
import { sha256 } from "../../src/runtime/index.ts";
import { sqliteStore } from "../../src/runtime/stores/sqlite/store.ts";
import { formatAgentId } from "../../src/kernel/index.ts";
import { runWorkerDuty } from "../../src/testing/worker-duty.ts";
import { cronReader } from "../../src/capabilities/schedules/cron-reader.ts";

/** Hosts the agent of the schedules until the process dies. */
await runWorkerDuty(async ({ file, server, mortal }) => {
  const runtime = await createRuntime({
    store: mortal(await sqliteStore({ path: file, hash: sha256, watchEveryMs: 5 })),
    workerId: server.caller,
    pollMs: 50,
    // Every life ends with a kill, so that runs would be paused as crash loops and hold up the queue of their schedule.
    crashLoopLimit: 1_000,
    // A life with few writes would claim many runs and commit none, and such runs are loaded later and later (L7).
    concurrency: 1,
    cron: async () => cronReader,
    onError: (error) => process.stderr.write(`${error.code}: ${error.message}\n`),
  });
  runtime.register({
    id: formatAgentId({ name: "porter" }),
    run: async (ctx) => ctx.step("carry", async () => "carried"),
  });
  setInterval(() => undefined, 60_000);
  return new Promise(() => undefined);
});
