import type { RunFactsView } from "./run-view.ts";

type Times = Pick<RunFactsView, "startedAt" | "forkedFrom">;

/** When the run itself started. A fork starts after the events that it shares with its origin. */
export function startOfRun({ startedAt, forkedFrom }: Times): number {
  return forkedFrom?.startedAt ?? startedAt;
}

/**
 * The time of a moment after the start of the log, in milliseconds. The time between the last event that a fork shares and
 * its own start is left out, because nothing happened in it.
 */
export function runTime({ startedAt, forkedFrom }: Times, at: number): number {
  const isOwn = forkedFrom !== null && at >= forkedFrom.startedAt;
  return at - startedAt - (isOwn ? forkedFrom.startedAt - forkedFrom.lastAt : 0);
}
