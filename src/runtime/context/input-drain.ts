import type { InputQueue, JsonValue } from "../../kernel/index.ts";
import { queueWait } from "../journal/wait-names.ts";
import type { StepExecutor } from "../task/step-executor.ts";
import { none } from "../task/step-outcome.ts";
import { checkDrainOptions, maxDrained, noInput, type DrainOptions } from "./context-options.ts";

/** Takes the input that waits in a queue of the run. Only the root has such queues. */
export function drainInput(
  steps: StepExecutor,
  queue: InputQueue,
  options: DrainOptions = {},
): Promise<readonly JsonValue[]> {
  const { mode = "one" } = options;
  const { taskId, task, state } = steps.runner;
  if (task.record.parentId !== null) return steps.exclusive(`drain ${queue}`, () => noInput(queue, options));
  const step = { address: steps.next(), kind: "drain", name: queue, digest: mode } as const;
  return steps.poll<JsonValue>(step, () => {
    checkDrainOptions(queue, options);
    const waiting = state.resolutions.all(taskId, queueWait(queue));
    return waiting.length === 0 ? none : waiting.slice(0, maxDrained[mode]).map(({ value }) => value);
  });
}
