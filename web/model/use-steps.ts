import { useMemo } from "preact/hooks";
import type { TaskId } from "../../src/kernel/index.ts";
import type { StepView } from "../../src/surfaces/view/step-log.ts";
import { useRead } from "../api/use-read.ts";
import type { RunModel } from "./run-model.ts";

/** The steps of a task, in the order in which they started. */
export type StepsOf = (taskId: TaskId) => readonly StepView[];

interface KnownSteps {
  readonly steps: readonly StepView[];
  /** Number of the last event that they contain. */
  readonly seq: number;
}

/** All steps of some tasks. They are read from the server once; later steps are added when they happen. */
class ShownSteps {
  readonly #model: RunModel;
  #known = new Map<TaskId, KnownSteps>();

  constructor(model: RunModel) {
    this.#model = model;
  }

  /** Adds what is in memory, forgets other tasks, and returns the tasks with steps that are not in memory. */
  show(taskIds: readonly TaskId[]): readonly TaskId[] {
    const { steps: log } = this.#model;
    const missing: TaskId[] = [];
    const known = new Map<TaskId, KnownSteps>();
    for (const taskId of taskIds) {
      const { steps, seq } = this.#known.get(taskId) ?? { steps: [], seq: -1 };
      const isMissing = seq + 1 < log.first;
      if (isMissing) missing.push(taskId);
      known.set(taskId, { steps: merged(steps, log.of(taskId)), seq: isMissing ? seq : log.seq });
    }
    this.#known = known;
    return missing;
  }

  of(taskId: TaskId): readonly StepView[] {
    return this.#known.get(taskId)?.steps ?? [];
  }

  async read(taskIds: readonly TaskId[]): Promise<void> {
    const { seq } = this.#model.steps;
    const steps = Map.groupBy(await this.#model.past.stepsOf(taskIds), ({ taskId }) => taskId);
    for (const taskId of taskIds)
      if (this.#known.has(taskId)) this.#known.set(taskId, { steps: steps.get(taskId) ?? [], seq });
  }
}

function keyOf({ startSeq, kind, id }: StepView): string {
  return `${startSeq} ${kind} ${id}`;
}

/** The steps of both lists. A step of the second list replaces the same one in the first. */
function merged(older: readonly StepView[], newer: readonly StepView[]): readonly StepView[] {
  if (older.length === 0 || older === newer) return newer;
  const steps = new Map([...older, ...newer].map((step) => [keyOf(step), step]));
  return [...steps.values()].toSorted((one, other) => one.startSeq - other.startSeq);
}

/** All steps of the tasks that are shown, also those that are no longer in memory, once they are read. */
export function useSteps(model: RunModel, taskIds: readonly TaskId[]): StepsOf {
  void model.version.value;
  const shown = useMemo(() => new ShownSteps(model), [model]);
  const missing = shown.show(taskIds);
  const until = missing.length === 0 ? 0 : model.steps.first;
  useRead(async () => missing.length > 0 && shown.read(missing), [shown, missing.join(" "), until]);
  return (taskId) => shown.of(taskId);
}
