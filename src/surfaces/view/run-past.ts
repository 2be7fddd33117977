import type { Event } from "../../kernel/index.ts";
import type { AfterEvent } from "./run-fold.ts";
import { RunTrace, type StoredTrace } from "./run-trace.ts";
import { StepLog, type StoredSteps } from "./step-log.ts";

/** The data of a `RunPast` as JSON, from which another `RunPast` can continue. */
export interface StoredPast {
  readonly trace: StoredTrace;
  readonly steps: StoredSteps;
}

export interface RunPastOptions {
  /** The data from which this object continues. If absent, it starts before the first event. */
  readonly from?: StoredPast;
  /** Maximum number of ended steps that are kept, as in `StepLogOptions`. Default: all. */
  readonly mostSteps?: number;
}

/**
 * Data of a run that can be calculated only from all of its events: its steps, and the data for drawings over time.
 */
export class RunPast {
  readonly trace: RunTrace;
  readonly steps: StepLog;

  constructor({ from, mostSteps }: RunPastOptions = {}) {
    this.trace = new RunTrace(from?.trace);
    this.steps = new StepLog({
      onEnd: (step) => this.trace.addEnded(step),
      ...(from !== undefined && { from: from.steps }),
      ...(mostSteps !== undefined && { most: mostSteps }),
    });
  }

  /**
   * Adds the next event, with the data that `RunFold.after` returns for it. Ignores an event that was already
   * added.
   */
  add(event: Event, after: AfterEvent): void {
    if (event.seq <= this.steps.seq) return;
    this.trace.add(event, after);
    this.steps.add(event);
  }

  /**
   * Returns the data with at most `mostSteps` ended steps, those that ended last. The trace in the data changes
   * with the next event.
   */
  stored(mostSteps: number): StoredPast {
    return { trace: this.trace.stored, steps: this.steps.stored(mostSteps) };
  }
}
