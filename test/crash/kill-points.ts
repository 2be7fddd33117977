import type { CrashOptions } from "../../src/testing/index.ts";
import { isFull } from "../effort.ts";

type Kills = NonNullable<CrashOptions["kills"]>;

/**
 * Chooses the writes at which workers die, for workloads that run one after the other. Most writes of a workload have
 * the same kind as a write of an earlier workload: every worker enlists, creates a run and claims it. Only the first
 * write of a kind is chosen, alternately before and after it, and the last commit of each workload, after it. With `npm run
 * test:full` every write is chosen, before and after.
 */
export function killPoints(): Kills {
  const seen = new Set<string>();
  const chosen = new WeakMap<readonly string[], ReadonlyMap<number, "before" | "after">>();
  const choose = (kinds: readonly string[]): ReadonlyMap<number, "before" | "after"> => {
    const points = new Map<number, "before" | "after">();
    for (const [index, kind] of kinds.entries()) {
      if (seen.has(kind)) continue;
      seen.add(kind);
      points.set(index + 1, seen.size % 2 === 0 ? "before" : "after");
    }
    const lastCommit = kinds.findLastIndex((kind) => kind.startsWith("journal.append"));
    return points.set(lastCommit + 1, "after");
  };
  return (at, when, kinds) => {
    if (isFull) return true;
    const points = chosen.get(kinds) ?? choose(kinds);
    chosen.set(kinds, points);
    return points.get(at) === when;
  };
}
