import type { CrashOptions, Death } from "../../src/testing/index.ts";
import { isFull } from "../effort.ts";

type Kills = NonNullable<CrashOptions["kills"]>;

/**
 * Chooses the writes at which workers are killed, for workloads that are executed one after the other. A write is
 * described by its operation, such as `journal.append`, its events and its fields. A write is chosen if one of these has
 * not occurred in an earlier write, because every worker enlists, creates a run and claims it. Kills alternate between
 * before and after the write. In a workload without a chosen write, a write in its middle is chosen, and in every ninth
 * workload also the last commit, after the write. With `npm run test:full`, every write is chosen, before and after.
 */
export function killPoints(): Kills {
  const seen = new Set<string>();
  const chosen = new WeakMap<readonly string[], ReadonlyMap<number, "before" | "after">>();
  let count = 0;
  let workloads = 0;
  const choose = (kinds: readonly string[]): ReadonlyMap<number, "before" | "after"> => {
    const points = new Map<number, "before" | "after">();
    for (const [index, kind] of kinds.entries()) {
      const parts = kind.split(" ");
      if (parts.every((part) => seen.has(part))) continue;
      for (const part of parts) seen.add(part);
      points.set(index + 1, count++ % 2 === 0 ? "after" : "before");
    }
    // Timing decides how often a workload suspends its run, and so whether a worker reaches the last commit.
    if (points.size === 0) points.set(kinds.length >> 1, count++ % 2 === 0 ? "after" : "before");
    const lastCommit = kinds.findLastIndex((kind) => kind.startsWith("journal.append"));
    return workloads++ % 9 === 0 ? points.set(lastCommit + 1, "after") : points;
  };
  return (at, when, kinds) => {
    if (isFull) return true;
    const points = chosen.get(kinds) ?? choose(kinds);
    chosen.set(kinds, points);
    return points.get(at) === when;
  };
}

/** A death before and after each of `count` writes. */
export function everyWrite(count: number): readonly Death[] {
  return Array.from({ length: count }, (_, index) => index + 1).flatMap((at) => [
    { at, when: "before" as const },
    { at, when: "after" as const },
  ]);
}
