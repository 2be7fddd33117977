import type { SimulatedRun, SimulateOptions } from "../../src/entries/testing.ts";

/** Work for a simulated fleet, with a model that predicts its results. */
export interface Workload {
  readonly name: string;
  /** The options of a simulation with this seed, without the seed and the faults. `steps`: does only so many of its steps. */
  readonly simulation: (
    seed: number,
    steps?: number,
  ) => Omit<SimulateOptions<never>, "seed" | "faults" | "only">;
  /** The number of steps of a seed, which a smaller scenario may have less of. Absent if the workload has no such steps. */
  readonly steps?: (seed: number) => number;
}

/** Creates a workload whose world has a type of its own. */
export function workload<World>(
  name: string,
  simulation: (seed: number, steps?: number) => Omit<SimulateOptions<World>, "seed" | "faults" | "only">,
  steps?: (seed: number) => number,
): Workload {
  return { name, simulation: simulation as unknown as Workload["simulation"], ...(steps && { steps }) };
}

/** Whether a tool of these runs has failed. */
export function hasErrors(runs: readonly SimulatedRun[]): boolean {
  return runs.some(({ events }) =>
    events.some((event) => event.type === "tool_execution_end" && event.data.result.isError),
  );
}
