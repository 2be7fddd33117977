import type { DrainMode, InputQueue, JsonValue } from "../../kernel/index.ts";
import { none, type StepExecutor } from "../task/step-executor.ts";
import { queueWait } from "../journal/wait-names.ts";

/** Takes what waits in a queue of the task; taken with the record. */
export function drainInput(
  steps: StepExecutor,
  queue: InputQueue,
  mode: DrainMode,
): Promise<readonly JsonValue[]> {
  const { taskId, task, state } = steps.runner;
  if (task.record.parentId !== null) return steps.exclusive(`drain ${queue}`, () => []);
  const step = { address: steps.next(), kind: "drain", name: queue, digest: mode } as const;
  // In the breath of the record: two branches that drain at once share nothing.
  return steps.poll<JsonValue>(step, () => {
    const waiting = state.resolutions.all(taskId, queueWait(queue));
    return waiting.length === 0 ? none : waiting.slice(0, most[mode]).map(({ value }) => value);
  });
}

const most: Readonly<Record<DrainMode, number>> = { one: 1, all: Infinity };
