import { randomUUID } from "node:crypto";
import type { EngineFactory } from "../../src/kernel/index.ts";
import { createRuntime } from "../../src/runtime/local-runtime.ts";
import type { DutyWork } from "../../src/testing/worker-duty.ts";
import { crashSite, openCrashStore } from "./crash-store.ts";
import { price, type Workload } from "./workload.ts";
import { forgetful } from "./workloads/forgetful.ts";
import { workloads } from "./workloads/index.ts";

/** Does the work of a workload, in a worker process or in a test. */
export const doWorkload: DutyWork = async ({ file, workload: name, server, mortal }) => {
  const workload = name === "forgetful" ? forgetful : (workloads[name] ?? (await withAgents(name)));
  if (workload === undefined) throw new Error(`there is no workload ${name}`);
  const [agent, ...others] = workload.agents(server);
  if (agent === undefined) throw new Error(`workload ${name} has no agent`);
  const store = mortal(await openCrashStore(file));
  let pin: string | undefined;
  const runtime = await createRuntime({
    store,
    ids: { next: () => pin ?? randomUUID() },
    prices: { find: () => price },
    pollMs: 10,
    onError: (error) => process.stderr.write(`${error.code}: ${error.message}\n`),
    ...(process.env[crashSite] !== undefined && { engine: await restateEngine(file) }),
    ...workload.runtime,
  });
  try {
    const { context } = workload;
    for (const each of [agent, ...others]) runtime.register(each, context && { context });
    return await workload.drive({
      runtime,
      store,
      agent,
      others,
      pinned: (id, mint) => {
        pin = id;
        const made = mint();
        pin = undefined;
        return made;
      },
    });
  } finally {
    await runtime.close();
  }
};

/** Loads the Restate engine only if needed, because every worker is a new process. */
async function restateEngine(file: string): Promise<EngineFactory> {
  return (await import("./crash-engine.ts")).caseEngine(file);
}

/** Loads the workloads with agents of the agents' layer only if needed, because every worker is a new process. */
async function withAgents(name: string): Promise<Workload | undefined> {
  const { composedWorkloads } = await import("./composed-workloads.ts");
  if (Object.hasOwn(composedWorkloads, name)) return composedWorkloads[name];
  const { lifeWorkloads } = await import("./life-workloads.ts");
  if (Object.hasOwn(lifeWorkloads, name)) return lifeWorkloads[name];
  const { workflowWorkloads } = await import("./workflow-workloads.ts");
  if (Object.hasOwn(workflowWorkloads, name)) return workflowWorkloads[name];
  const { sagaWorkloads } = await import("./saga-workloads.ts");
  if (Object.hasOwn(sagaWorkloads, name)) return sagaWorkloads[name];
  const { objectWorkloads } = await import("./object-workloads.ts");
  if (Object.hasOwn(objectWorkloads, name)) return objectWorkloads[name];
  const { experimentWorkloads } = await import("./experiment-workloads.ts");
  if (Object.hasOwn(experimentWorkloads, name)) return experimentWorkloads[name];
  const { thinkerWorkloads } = await import("./thinker-workloads.ts");
  return thinkerWorkloads[name];
}
