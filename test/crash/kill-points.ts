import type { CrashOptions } from "../../src/testing/index.ts";

/** Whether a worker dies before and after every write. `npm run test:crash` sets it. */
export const isComplete = process.env["REEVE_CRASH"] === "all";

type Kills = NonNullable<CrashOptions["kills"]>;

/**
 * Chooses the writes at which workers die, for workloads that run one after the other. Most writes of a workload have
 * the same kind and the same predecessor as a write of an earlier workload: every worker enlists, creates a run and
 * claims it. Only the first such write is chosen, alternately before and after it, and the first and the last commit of
 * each workload. With `REEVE_CRASH=all` every write is chosen, before and after.
 */
export function killPoints(): Kills {
  const seen = new Set<string>();
  const chosen = new WeakMap<readonly string[], ReadonlyMap<number, "before" | "after">>();
  const choose = (kinds: readonly string[]): ReadonlyMap<number, "before" | "after"> => {
    const points = new Map<number, "before" | "after">();
    const commits = kinds.flatMap((kind, index) => (kind.startsWith("journal.append") ? [index] : []));
    for (const [index, kind] of kinds.entries()) {
      const pair = `${kinds[index - 1] ?? ""} > ${kind}`;
      if (seen.has(pair) && index !== commits.at(0) && index !== commits.at(-1)) continue;
      seen.add(pair);
      points.set(index + 1, points.size % 2 === 0 ? "before" : "after");
    }
    return points;
  };
  return (at, when, kinds) => {
    if (isComplete) return true;
    const points = chosen.get(kinds) ?? choose(kinds);
    chosen.set(kinds, points);
    return points.get(at) === when;
  };
}
