import type { RunHandle, RunId, Runtime } from "../../src/kernel/index.ts";

/** Returns a handle of the run in this runtime. A handle of a closed runtime cannot be used any more. */
export async function findRun(runtime: Runtime, { runId }: { readonly runId: RunId }): Promise<RunHandle> {
  const run = await runtime.find(runId);
  if (run === undefined) throw new Error(`run ${runId} does not exist`);
  return run;
}
