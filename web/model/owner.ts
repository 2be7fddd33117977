import type { RunView } from "../../src/surfaces/view/run-view.ts";
import type { RunModel } from "./run-model.ts";

/**
 * Whether no worker owns the run at the shown event. In a replay, this is known from the next event, which reports
 * that the owner crashed. Live, the server reports that the run waits for a worker.
 */
export function hasNoOwner(model: RunModel, view: RunView): boolean {
  const crash = model.live.value?.recoveries.find(({ isCrash, seq }) => isCrash && seq === view.seq + 1);
  if (model.playhead.value !== null) return crash !== undefined;
  const summary = model.summary.value;
  return summary !== null && summary.endedAt === null && view.seq > 0 && summary.waitsFor.includes("worker");
}

/**
 * Explains what it means that no worker owns the run. In a replay, the next event reports that the worker crashed.
 * Live, a worker may also have released the run. In both cases a provider may still charge for a call that was in
 * progress.
 */
export function noOwnerWords({ playhead }: Pick<RunModel, "playhead">): string {
  const why = playhead.value === null ? "No worker owns the run." : "The worker died.";
  return `${why} No call starts until a worker takes it over. A call in flight may still be billed.`;
}
