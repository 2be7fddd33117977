import type { RunView } from "../../src/surfaces/view/run-view.ts";
import type { RunModel } from "./run-model.ts";

/**
 * Whether no worker owns the run at the event that is shown. In a replay, the next event says that the owner had died. Live,
 * the server says that the run waits for a worker.
 */
export function hasNoOwner(model: RunModel, view: RunView): boolean {
  const crash = model.live.value?.recoveries.find(({ isCrash, seq }) => isCrash && seq === view.seq + 1);
  if (model.playhead.value !== null) return crash !== undefined;
  const summary = model.summary.value;
  return summary !== null && summary.endedAt === null && view.seq > 0 && summary.waitsFor.includes("worker");
}
