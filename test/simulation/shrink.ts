import type { SimulationReport } from "../../src/entries/testing.ts";
import { runSeed, type SeedLimits } from "./run-seed.ts";
import type { Workload } from "./workload.ts";

/** A failing seed with as few workers, steps and faults as it needs. */
export interface Shrunk {
  readonly limits: SeedLimits;
  readonly report: SimulationReport;
  /** The scenario for a reader: the command, the size, the faults, what is wrong, and the timeline. */
  readonly text: string;
}

/** Maximum number of simulations for one seed. */
const mostTries = 300;
/** Maximum number of lines of the timeline that a reader gets. */
const mostLines = 60;

/** Leaves out workers, steps and faults of a failing seed as long as it still fails. */
export async function shrink(workload: Workload, seed: number, first: SimulationReport): Promise<Shrunk> {
  const search = new Search(workload, seed, first);
  await search.shrinkWorkers();
  await search.shrinkSteps();
  await search.try({ ...search.limits, only: [] });
  for (let size = Math.ceil(search.faults.length / 2); size >= 1; size = await search.sweep(size));
  // With fewer faults, fewer steps may suffice.
  await search.shrinkSteps();
  const { report } = search;
  const limits = { ...search.limits, only: search.faults };
  return { limits, report, text: textOf(workload, seed, { limits, report }) };
}

/** The smallest scenario so far. */
class Search {
  readonly #workload: Workload;
  readonly #seed: number;
  #triesLeft = mostTries;
  limits: SeedLimits = {};
  report: SimulationReport;

  constructor(workload: Workload, seed: number, report: SimulationReport) {
    this.#workload = workload;
    this.#seed = seed;
    this.report = report;
  }

  /** The faults of the smallest scenario. */
  get faults(): readonly string[] {
    return this.report.faults.map(({ id }) => id);
  }

  /** Simulates a smaller scenario. Returns whether it fails as well. */
  async try(limits: SeedLimits): Promise<boolean> {
    if (this.#triesLeft-- <= 0) return false;
    const report = await runSeed(this.#workload, this.#seed, limits);
    if (report.violations.length === 0) return false;
    this.limits = limits;
    this.report = report;
    return true;
  }

  async shrinkWorkers(): Promise<void> {
    const { workers: most = 2 } = this.#workload.simulation(this.#seed);
    for (let workers = 1; workers < most; workers++) if (await this.try({ ...this.limits, workers })) return;
  }

  async shrinkSteps(): Promise<void> {
    const most = this.limits.steps ?? this.#workload.steps?.(this.#seed) ?? 0;
    for (let steps = 1; steps < most; steps++) if (await this.try({ ...this.limits, steps })) return;
  }

  /** Leaves out `size` faults at a time. Returns the next size, and 0 at the end. */
  async sweep(size: number): Promise<number> {
    const before = this.faults.length;
    for (let from = 0; from < this.faults.length;) {
      const { length } = this.faults;
      const only = this.faults.filter((_, index) => index < from || index >= from + size);
      // Some of the other faults may no longer happen.
      const isSmaller = (await this.try({ ...this.limits, only })) && this.faults.length < length;
      if (!isSmaller) from += size;
    }
    if (this.#triesLeft <= 0 || this.faults.length === 0) return 0;
    if (this.faults.length < before) return Math.min(size, Math.ceil(this.faults.length / 2));
    return size === 1 ? 0 : Math.ceil(size / 2);
  }
}

function textOf(
  { name }: Workload,
  seed: number,
  { limits, report }: Pick<Shrunk, "limits" | "report">,
): string {
  const { violations, timeline } = report;
  const { workers = "all", steps = "all", only = [] } = limits;
  const left = timeline.length - mostLines;
  return [
    `FAILED: npm run test:simulation -- --workload ${name} --seeds 1 --from ${seed}`,
    `needs ${workers} workers, ${steps} steps, and these faults: ${only.length === 0 ? "none" : only.join(" ")}`,
    ...violations.map((each) => `  ${each}`),
    ...(left > 0 ? [`  (${left} earlier lines are left out)`] : []),
    ...timeline.slice(-mostLines).map((line) => `  ${line}`),
  ].join("\n");
}
