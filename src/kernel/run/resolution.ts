import type { RunId, TaskId } from "../base/identity.ts";
import type { JsonObject, JsonValue } from "../base/json-value.ts";

/**
 * The value for a task's wait. `join`, `ask`, `sleepUntil`, `waitForSignal` and approvals share one primitive: a task
 * waits for a name, and a resolution with that name ends the wait. W1: a resolution that arrives early is kept, and
 * each is consumed once, by the step that waited. W2: several resolutions of one name are consumed in the order of
 * arrival.
 */
export interface Resolution {
  /** Id of the waiting task. */
  readonly taskId: TaskId;
  /** Name of the wait. */
  readonly wait: string;
  /** Value that the wait returns. */
  readonly value: JsonValue;
  /** S5: for an input that was submitted and became steering, the id of the run that it would have started. */
  readonly runId?: RunId;
  /** S5: for an input that was submitted and became steering, the metadata of the submission. */
  readonly metadata?: JsonObject;
}
