import type { ExtensionPort } from "../../kernel/index.ts";
import { queueWait } from "../journal/wait-names.ts";
import { portFor } from "../process/worker-context.ts";
import type { TaskRunner } from "../task/task-runner.ts";

/** Creates what the extensions of a task's agent use of the runtime. */
export function taskPort({ worker, facts, state, taskId }: TaskRunner, signal: AbortSignal): ExtensionPort {
  const hasQueued = (): boolean =>
    state.resolutions.all(taskId, queueWait("steer")).length > 0 ||
    state.resolutions.all(taskId, queueWait("follow_up")).length > 0;
  return portFor(worker, { ...facts, signal, hasQueued });
}
