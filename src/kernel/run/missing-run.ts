import { Fault } from "../base/fault.ts";
import type { RunId } from "../base/identity.ts";

/** S6: returns the fault of a call with the id of a run that does not exist for the caller. */
export function missingRun(runId: RunId): Fault {
  return new Fault("not_found", `run ${runId} does not exist in this store`);
}
