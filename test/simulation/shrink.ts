import type { SimulationReport } from "../../src/entries/testing.ts";
import { runSeed } from "./run-seed.ts";
import type { Workload } from "./workload.ts";

/** A failing seed with as few faults as it needs. */
export interface Shrunk {
  readonly only: readonly string[];
  readonly report: SimulationReport;
  /** The scenario for a reader: the command, the faults, what is wrong, and the timeline. */
  readonly text: string;
}

/** Maximum number of simulations for one seed. */
const mostTries = 200;
/** Lines of the timeline before the last one that a reader gets. */
const mostLines = 60;

/** Leaves out faults of a failing seed as long as it still fails. */
export async function shrink(workload: Workload, seed: number, first: SimulationReport): Promise<Shrunk> {
  const search = new Search(workload, seed, first);
  await search.try([]);
  for (let size = Math.ceil(search.only.length / 2); size >= 1; size = await search.sweep(size));
  const { only, report } = search;
  return { only, report, text: textOf(workload, seed, { only, report }) };
}

/** A search that keeps the smallest scenario that it has found. */
class Search {
  readonly #workload: Workload;
  readonly #seed: number;
  #triesLeft = mostTries;
  only: readonly string[];
  report: SimulationReport;

  constructor(workload: Workload, seed: number, report: SimulationReport) {
    this.#workload = workload;
    this.#seed = seed;
    this.report = report;
    this.only = report.faults.map(({ id }) => id);
  }

  /** Simulates with these faults only. Returns whether fewer faults than before suffice. */
  async try(only: readonly string[]): Promise<boolean> {
    if (this.#triesLeft-- <= 0) return false;
    const report = await runSeed(this.#workload, this.#seed, { only });
    // Some of the faults may no longer happen.
    const left = report.faults.map(({ id }) => id);
    if (report.violations.length === 0 || left.length >= this.only.length) return false;
    this.only = left;
    this.report = report;
    return true;
  }

  /** Leaves out `size` faults at a time. Returns the next size, and 0 at the end. */
  async sweep(size: number): Promise<number> {
    let hasShrunk = false;
    for (let from = 0; from < this.only.length;) {
      const without = this.only.filter((_, index) => index < from || index >= from + size);
      if (await this.try(without)) hasShrunk = true;
      else from += size;
    }
    if (this.#triesLeft <= 0 || this.only.length === 0) return 0;
    if (hasShrunk) return Math.min(size, Math.ceil(this.only.length / 2));
    return size === 1 ? 0 : Math.ceil(size / 2);
  }
}

function textOf({ name }: Workload, seed: number, { only, report }: Pick<Shrunk, "only" | "report">): string {
  const { violations, timeline } = report;
  const left = timeline.length - mostLines;
  return [
    `FAILED: npm run test:simulation -- --workload ${name} --seeds 1 --from ${seed}`,
    `needs these faults: ${only.length === 0 ? "none" : only.join(" ")}`,
    ...violations.map((each) => `  ${each}`),
    ...(left > 0 ? [`  (${left} earlier lines are left out)`] : []),
    ...timeline.slice(-mostLines).map((line) => `  ${line}`),
  ].join("\n");
}
