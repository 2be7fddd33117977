import type { Event, InputQueue, JsonValue, TaskId } from "../../kernel/index.ts";
import type { Resolutions } from "./resolutions.ts";
import { queueWait } from "./wait-names.ts";

export const inputQueues: readonly InputQueue[] = ["steer", "follow_up"];

/** An input with an id that no step has read yet. */
interface QueuedValue {
  readonly taskId: TaskId;
  readonly kind: InputQueue;
  readonly inputId: string;
  readonly input: JsonValue;
}

/** What is known about the queues of a run. */
interface Queues {
  readonly tasks: ReadonlyMap<TaskId, unknown>;
  readonly resolutions: Resolutions;
}

/**
 * Returns the inputs that no step has read yet. Inputs that an earlier build received have no id and are left out.
 * Costs O(tasks).
 */
export function queuedInputs({ tasks, resolutions }: Queues): readonly QueuedValue[] {
  if (resolutions.isEmpty) return [];
  return [...tasks.keys()].flatMap((taskId) =>
    inputQueues.flatMap((kind) =>
      resolutions
        .all(taskId, queueWait(kind))
        .flatMap(({ inputId, value: input }) =>
          inputId === undefined ? [] : [{ taskId, kind, inputId, input }],
        ),
    ),
  );
}

/** Removes a withdrawn input from its queue. */
export function takeWithdrawn(
  resolutions: Resolutions,
  { taskId, data: { kind, inputId } }: Event<"input_withdraw">,
): void {
  const wait = queueWait(kind);
  const withdrawn = resolutions.all(taskId, wait).filter((each) => each.inputId === inputId);
  resolutions.takeOut(taskId, wait, withdrawn);
}
