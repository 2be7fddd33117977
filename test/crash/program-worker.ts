import { createRuntime } from "../../src/runtime/local-runtime.ts";
import { callServer } from "../../src/testing/served-call.ts";
import { runWorkerDuty } from "../../src/testing/worker-duty.ts";
import { programWorkflows } from "../scale/program-workflows.ts";
import { openCrashStore } from "./crash-store.ts";
import { siteEngine, type SiteAddress } from "./site-engine.ts";

/** Hosts the workflows of random programs until the process receives SIGTERM. */
await runWorkerDuty(async ({ file, server, data }) => {
  const { site } = data as { readonly site?: SiteAddress };
  const runtime = await createRuntime({
    ...(site !== undefined && { engine: siteEngine(site) }),
    store: await openCrashStore(file),
    workerId: server.caller,
    pollMs: 50,
    // Runs leave memory as soon as they wait, so that they are replayed often.
    suspendAfterMs: 5,
    // The harness kills more processes than a run may end.
    crashLoopLimit: 1_000,
    onError: (error) => process.stderr.write(`${error.code}: ${error.message}\n`),
  });
  for (const workflow of programWorkflows((call) => callServer(server, call))) runtime.register(workflow);
  const stayAlive = setInterval(() => undefined, 60_000);
  const stopped = new Promise((resolve) => process.once("SIGTERM", resolve));
  process.stderr.write("ready\n");
  await stopped;
  clearInterval(stayAlive);
  await runtime.close();
  return [];
});
