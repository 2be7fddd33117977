import type { ForkStart, ForkView, RunFactsView } from "./run-view.ts";

type Times = Pick<RunFactsView, "startedAt" | "forkedFrom">;

/** When the run itself started. A fork starts after the events that it shares with its origin. */
export function startOfRun({ startedAt, forkedFrom }: Times): number {
  return forkedFrom?.startedAt ?? startedAt;
}

/** The starts of forks in the log of a run, the first one first: those of its origins, and its own. */
export function forksIn(forkedFrom: ForkView | null): readonly ForkStart[] {
  if (forkedFrom === null) return [];
  const { earlier, at, startedAt, lastAt } = forkedFrom;
  return [...earlier, { seq: at + 1, startedAt, lastAt }];
}

/**
 * The time of a moment after the start of the log, in milliseconds. The time between the last event that a fork shares and
 * its own start is left out, because nothing happened in it.
 */
export function runTime({ startedAt, forkedFrom }: Times, at: number): number {
  let time = at - startedAt;
  for (const fork of forksIn(forkedFrom)) if (at >= fork.startedAt) time -= fork.startedAt - fork.lastAt;
  return time;
}
