import { Fault, type RunId } from "../../kernel/index.ts";

/** L15: creates the fault of a claim that would take a run away from a live worker. */
export function ownedRun(runId: RunId, owner: string): Fault {
  return new Fault(
    "run_owned",
    `run ${runId} is owned by the worker ${owner}, which is alive or whose lease has not ended; try again later`,
    { details: { runId, owner } },
  );
}
