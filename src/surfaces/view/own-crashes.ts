import type { RecoveryView, RunFactsView } from "./run-view.ts";

/** The crashes that a run survived. Those of the events that a fork shares are its origin's. */
export function ownCrashes({
  recoveries,
  forkedFrom,
}: Pick<RunFactsView, "recoveries" | "forkedFrom">): readonly RecoveryView[] {
  return recoveries.filter(({ isCrash, seq }) => isCrash && seq > (forkedFrom?.at ?? -1));
}
