import type { RecoveryView, RunFactsView } from "./run-view.ts";

/**
 * Returns the crashes that a run survived. Crashes in the events that a fork shares with its original run belong to
 * the original run.
 */
export function ownCrashes({
  recoveries,
  forkedFrom,
}: Pick<RunFactsView, "recoveries" | "forkedFrom">): readonly RecoveryView[] {
  return recoveries.filter(({ isCrash, seq }) => isCrash && seq > (forkedFrom?.at ?? -1));
}
