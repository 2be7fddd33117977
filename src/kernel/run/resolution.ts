import type { RunId, TaskId } from "../base/identity.ts";
import type { JsonValue } from "../base/json-value.ts";

/**
 * One primitive stands under `join`, `ask`, `sleepUntil`, `waitForSignal` and approvals: a task waits for a name, and someone resolves
 * it. One that comes early is kept; each is consumed once, by the step that waited (W1). Several under one name are consumed
 * in the order in which they came (W2).
 */
export interface Resolution {
  readonly taskId: TaskId;
  readonly wait: string;
  readonly value: JsonValue;
  /** S5: of an input that was submitted and became steering, the run it would have started. */
  readonly runId?: RunId;
}
