import type { TaskId } from "../../kernel/index.ts";
import type { StoredCalls } from "./recorded-calls.ts";
import type { StepView } from "./step-log.ts";

/** The newest steps of a run and the rest of a log's state, as JSON. */
export interface StoredSteps {
  /** Number of the last event, and its time. */
  readonly seq: number;
  readonly at: number;
  /** `steps` contains every step in progress, and every one that ended at or after this event. */
  readonly first: number;
  /** The steps of each task in the order in which they started. */
  readonly steps: readonly StepView[];
  /** Tasks that give their seats, each with the task that takes it. */
  readonly takers: readonly (readonly [TaskId, TaskId])[];
  /** Tasks that have ended, each with the tool calls that its end cut off. */
  readonly endedTasks: readonly (readonly [TaskId, readonly StepView[]])[];
  readonly parents: readonly (readonly [TaskId, TaskId | null])[];
  readonly calls: StoredCalls;
  /** The last recovery, with the time of the last event before it and the number of calls that were lost. */
  readonly recovery: { readonly seq: number; readonly lastAt: number; readonly lost: number };
}
