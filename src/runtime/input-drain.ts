import type { DrainMode, InputQueue, JsonValue } from "../kernel/index.ts";
import type { ScopeSteps } from "./scope-steps.ts";
import { queueWait } from "./wait-name.ts";

/**
 * Takes what waits in a queue of the task; taken with the record. A drain that finds nothing is recorded too: what is begun after it
 * depends on it, and may be in flight when the owner dies.
 */
export async function drainInput(
  steps: ScopeSteps,
  queue: InputQueue,
  mode: DrainMode,
): Promise<readonly JsonValue[]> {
  const { taskId, task, state } = steps.runner;
  if (task.record.parentId !== null) return steps.alone(`drain ${queue}`, async () => []);
  const step = { address: steps.next(), kind: "drain", name: queue, digest: mode } as const;
  // In the breath of the record: two branches that drain at once share nothing.
  return steps.journaled<readonly JsonValue[]>(
    step,
    async () => () =>
      state
        .resolutions(taskId, queueWait(queue))
        .slice(0, most[mode])
        .map(({ value }) => value),
  );
}

const most: Readonly<Record<DrainMode, number>> = { one: 1, all: Infinity };
