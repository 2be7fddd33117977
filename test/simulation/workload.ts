import type { SimulatedRun, SimulateOptions } from "../../src/entries/testing.ts";

/** Work for a simulated fleet, with a model that predicts its results. */
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

/** Whether a tool of these runs has failed. */
export function hasErrors(runs: readonly SimulatedRun[]): boolean {
  return runs.some(({ events }) =>
    events.some((event) => event.type === "tool_execution_end" && event.data.result.isError),
  );
}
