import { expect, test } from "vitest";
import { casesOf } from "../effort.ts";
import { runSeed } from "./run-seed.ts";
import { workloads } from "./workloads/index.ts";

for (const [name, workload] of workloads) {
  const seeds = casesOf(1_000, 28);
  test(`${seeds} seeds of the simulated workload ${name} keep all promises`, async () => {
    const wrong: string[] = [];
    for (let seed = 1; seed <= seeds; seed++)
      for (const violation of (await runSeed(workload, seed)).violations)
        wrong.push(`seed ${seed}: ${violation}`);
    expect(wrong, `npm run test:simulation -- --workload ${name} --seeds 1 --from SEED`).toEqual([]);
  });
}

test("the same seed gives the same log and the same timeline of a simulation, byte for byte", async () => {
  const differing: string[] = [];
  const all = [...workloads.values()];
  for (let seed = 1; seed <= casesOf(1_000, 200); seed++) {
    // The orders are the fastest workload. Every other one has a share.
    const workload = seed % 2 === 0 ? workloads.get("orders") : all[(seed >> 1) % all.length];
    if (workload === undefined) throw new Error("there is no workload");
    const [one, other] = [await runSeed(workload, seed), await runSeed(workload, seed)];
    if (one.log !== other.log || one.timeline.join("\n") !== other.timeline.join("\n"))
      differing.push(`${workload.name} ${seed}`);
  }
  expect(differing).toEqual([]);
});

test("different seeds give different timelines of a simulation", async () => {
  const workload = workloads.get("orders");
  if (workload === undefined) throw new Error("there is no such workload");
  const seen = new Set<string>();
  for (let seed = 1; seed <= 10; seed++) seen.add((await runSeed(workload, seed)).timeline.join("\n"));
  expect(seen.size).toBe(10);
});
