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

/**
 * What it means that no worker owns the run. In a replay, the next event says that the worker died. Live, a worker may also have
 * given the run back. In both cases a provider may still bill a call that was in flight.
 */
export function noOwnerWords({ playhead }: Pick<RunModel, "playhead">): string {
  const why = playhead.value === null ? "No worker owns the run." : "The worker died.";
  return `${why} No call starts until a worker takes it over. A call in flight may still be billed.`;
}
