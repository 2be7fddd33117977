import { simulate, type SimulationReport } from "../../src/entries/testing.ts";
import type { Workload } from "./workload.ts";

/** What makes the scenario of a seed smaller. */
export interface SeedLimits {
  /** Number of workers. Default: that of the seed. */
  readonly workers?: number;
  /** Number of steps of the workload. Default: all steps of the seed. */
  readonly steps?: number;
  /** The only faults that happen. If absent, all faults of the seed happen. */
  readonly only?: readonly string[];
  /** Whether the simulation has no faults. Default: `false`. */
  readonly isCalm?: boolean;
}

/** Simulates a workload with a seed. */
export function runSeed(
  { simulation }: Workload,
  seed: number,
  { workers, steps, only, isCalm = false }: SeedLimits = {},
): Promise<SimulationReport> {
  return simulate<never>({
    ...simulation(seed, steps),
    ...(workers !== undefined && { workers }),
    seed,
    ...(isCalm && { faults: "none" }),
    ...(only !== undefined && { only }),
  });
}
