import type { RunView } from "../../../src/surfaces/view/run-view.ts";

/**
 * Returns the time since which no agent of a run works, because all wait or the run is paused. `null` if an agent
 * works, or the run has ended.
 */
export function idleSince({
  status,
  at,
  endedAt,
  active,
  live,
}: Pick<RunView, "status" | "at" | "endedAt" | "active" | "live">): number | null {
  if (endedAt !== null || live === 0) return null;
  return active === 0 || status === "paused" ? at : null;
}

/** Returns the duration of a run, and the time in which an agent worked. `until` is the end of the run, or now. */
export function workedMs(
  { waits, recoveries }: Pick<RunView, "waits" | "recoveries">,
  startedAt: number,
  until: number,
  idleAt: number | null,
): number {
  const crashes = recoveries.filter(({ isCrash }) => isCrash);
  const rested = [...waits, ...crashes]
    .filter(({ lastAt }) => lastAt >= startedAt)
    .reduce((sum, { at, lastAt }) => sum + Math.max(0, Math.min(at, until) - lastAt), 0);
  const open = idleAt === null ? 0 : Math.max(0, until - idleAt);
  return Math.max(0, until - startedAt - rested - open);
}
