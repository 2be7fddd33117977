import type { ForkStart, ForkView, RunFactsView } from "./run-view.ts";

type Times = Pick<RunFactsView, "startedAt" | "forkedFrom">;

/**
 * Returns the time at which the run itself started. A fork starts after the events that it shares with its original
 * run.
 */
export function startOfRun({ startedAt, forkedFrom }: Times): number {
  return forkedFrom?.startedAt ?? startedAt;
}

/** Returns the starts of forks in the log of a run, in their order: those of its original runs, and its own. */
export function forksIn(forkedFrom: ForkView | null): readonly ForkStart[] {
  if (forkedFrom === null) return [];
  const { earlier, at, startedAt, lastAt } = forkedFrom;
  return [...earlier, { seq: at + 1, startedAt, lastAt }];
}

/**
 * Converts a time to milliseconds after the start of the log. For a fork, the time between the last shared event
 * and the start of the fork is left out, because nothing happened in it.
 */
export function runTime({ startedAt, forkedFrom }: Times, at: number): number {
  let time = at - startedAt;
  for (const fork of forksIn(forkedFrom)) if (at >= fork.startedAt) time -= fork.startedAt - fork.lastAt;
  return time;
}
