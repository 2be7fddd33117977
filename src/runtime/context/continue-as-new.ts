import { assertJson, type JsonValue } from "../../kernel/index.ts";
import type { StepExecutor } from "../task/step-executor.ts";
import type { TaskRunner } from "../task/task-runner.ts";

/** The value that `continueAsNew` throws to end the agent's code. */
export class ContinueAsNew {
  readonly state: JsonValue;

  constructor(state: JsonValue) {
    this.state = state;
  }
}

/**
 * Starts the new journal of the task. It first writes all earlier records, so that no record of the old journal
 * appears in the new one.
 */
export async function continueAsNew(
  runner: TaskRunner,
  { cancelScope }: StepExecutor,
  state: JsonValue,
): Promise<never> {
  assertJson(state, "the state to continue from");
  runner.worker.sizes.assert(state, "the state to continue from");
  await runner.activity.whenSeated(cancelScope);
  await runner.log.flush();
  // A copy, because the code may change the object that it has passed.
  return runner.leave(new ContinueAsNew(structuredClone(state)));
}
