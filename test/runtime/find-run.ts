import type { RunHandle, RunId, Runtime } from "../../src/kernel/index.ts";

/** A run through the runtime that has it now: a handle of one that was closed is of no use. */
export async function foundRun(runtime: Runtime, { runId }: { readonly runId: RunId }): Promise<RunHandle> {
  const run = await runtime.find(runId);
  if (run === undefined) throw new Error(`${runId} is not there`);
  return run;
}
