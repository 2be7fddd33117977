import { simulate, type SimulationReport } from "../../src/entries/testing.ts";
import type { Workload } from "./workload.ts";

/** The limits of the faults of a seed. */
export interface SeedLimits {
  /** The only faults that happen. If absent, all faults of the seed happen. */
  readonly only?: readonly string[];
  /** Whether the simulation has no faults. Default: `false`. */
  readonly isCalm?: boolean;
}

/** Simulates a workload with a seed. */
export function runSeed(
  { simulation }: Workload,
  seed: number,
  { only, isCalm = false }: SeedLimits = {},
): Promise<SimulationReport> {
  return simulate<never>({
    ...simulation(seed),
    seed,
    ...(isCalm && { faults: "none" }),
    ...(only !== undefined && { only }),
  });
}
