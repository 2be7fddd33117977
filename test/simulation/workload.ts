import type { SimulateOptions } from "../../src/entries/testing.ts";

/** Work for a simulated fleet, with the oracle that knows what may be seen of it. */
export interface Workload {
  readonly name: string;
  /** The options of a simulation with this seed, without the seed and the faults. */
  readonly simulation: (seed: number) => Omit<SimulateOptions<never>, "seed" | "faults" | "only">;
}

/** Creates a workload whose world has a type of its own. */
export function workload<World>(
  name: string,
  simulation: (seed: number) => Omit<SimulateOptions<World>, "seed" | "faults" | "only">,
): Workload {
  return { name, simulation: simulation as unknown as Workload["simulation"] };
}
