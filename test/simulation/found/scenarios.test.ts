import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { runSeed, type SeedLimits } from "../run-seed.ts";
import { workloads } from "../workloads/index.ts";

/** A scenario that failed once, as the sweep has written it. */
interface Scenario {
  readonly workload: string;
  readonly seed: number;
  readonly limits: SeedLimits;
  /** What was wrong. */
  readonly violations: readonly string[];
}

const folder = new URL("scenarios/", import.meta.url);
const scenarios = readdirSync(folder).map(
  (file) => JSON.parse(readFileSync(new URL(file, folder), "utf8")) as Scenario,
);

test.each(scenarios)(
  "seed $seed of the workload $workload has no violation any more",
  async ({ workload: name, seed, limits, violations }) => {
    expect(violations.length).toBeGreaterThan(0);
    const workload = workloads.get(name);
    if (workload === undefined) throw new Error(`there is no workload ${name}`);
    expect((await runSeed(workload, seed, limits)).violations).toEqual([]);
  },
);
