import type { OutsideCall, SeenCommit, SimulatedRun, SimulateOptions } from "../../src/entries/testing.ts";

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

/** The longest time that a call needs to arrive at the outside service, in milliseconds. */
const onItsWayMs = 10;

/** J1, J3: no call of a step takes effect after the record of the step, by any worker. */
export class StepRecords {
  readonly #recordedAt = new Map<string, number>();

  /** Notes the records of a commit. */
  readonly note = ({ runId, commit, atMs }: SeenCommit): void => {
    for (const { taskId, address } of commit.steps ?? []) {
      const key = `${runId}/${taskId}/${address}`;
      if (!this.#recordedAt.has(key)) this.#recordedAt.set(key, atMs);
    }
  };

  /** Says which calls took effect too late. Their keys are the idempotency keys of their steps. */
  late(calls: readonly OutsideCall[]): readonly string[] {
    return calls.flatMap(({ key, name, process, atMs }) => {
      const recordedAt = key === null ? undefined : this.#recordedAt.get(key);
      if (recordedAt === undefined || atMs <= recordedAt + onItsWayMs) return [];
      return [`${process} calls ${name} (${key}) ${Math.round(atMs - recordedAt)} ms after its record`];
    });
  }
}
