import { createRuntime } from "../../src/runtime/local-runtime.ts";
import { runWorkerDuty } from "../../src/testing/worker-duty.ts";
import { openCrashStore } from "./crash-store.ts";
import { errandRun, porter } from "./porter.ts";
import { crashEngine } from "./crash-engine.ts";

/** Submits its runs and hosts the porter agent until the process receives a signal to end. */
await runWorkerDuty(async ({ file, server, data, mortal }) => {
  const agent = porter(server);
  const runtime = await createRuntime({
    ...crashEngine(),
    store: mortal(await openCrashStore(file)),
    workerId: server.caller,
    pollMs: 10,
    onError: (error) => process.stderr.write(`${error.code}: ${error.message}\n`),
  });
  runtime.register(agent);
  for (let index = 0; index < Number(data); index++) {
    await runtime.submit(agent, null, { runId: errandRun(server.caller, index) });
  }
  const stayAlive = setInterval(() => undefined, 60_000);
  await new Promise((resolve) => process.once("SIGTERM", resolve));
  clearInterval(stayAlive);
  await runtime.close();
  return [];
});
