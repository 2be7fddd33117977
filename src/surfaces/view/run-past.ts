import type { Event } from "../../kernel/index.ts";
import type { AfterEvent } from "./run-fold.ts";
import { RunTrace, type StoredTrace } from "./run-trace.ts";
import { StepLog, type StoredSteps } from "./step-log.ts";

/** A past as JSON, from which another one continues. */
export interface StoredPast {
  readonly trace: StoredTrace;
  readonly steps: StoredSteps;
}

export interface RunPastOptions {
  /** The past that this one continues. If absent, it starts before the first event. */
  readonly from?: StoredPast;
  /** Number of ended steps that are kept, as in `StepLogOptions`. Default: all. */
  readonly mostSteps?: number;
}

/** What only all events of a run from the first one on can tell: its steps, and what is drawn over time. */
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

  /** Adds the next event, with what it left behind. Ignores an event that was added before. */
  add(event: Event, after: AfterEvent): void {
    if (event.seq <= this.steps.seq) return;
    this.trace.add(event, after);
    this.steps.add(event);
  }

  /** The past with so many of the steps that ended last. The trace in it changes with the next event. */
  stored(mostSteps: number): StoredPast {
    return { trace: this.trace.stored, steps: this.steps.stored(mostSteps) };
  }
}
