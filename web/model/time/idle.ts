import type { RunView } from "../../../src/surfaces/view/run-view.ts";

/** Since when no agent of a run works: all wait, or the run is paused. `null` if one works, or the run has ended. */
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

/** How long a run took, and how much of that an agent worked. `until` is its end, or now. */
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
