import { assertJson, type JsonValue } from "../../kernel/index.ts";
import type { StepExecutor } from "../task/step-executor.ts";
import type { TaskRunner } from "../task/task-runner.ts";

/** Thrown by `continueAsNew` to leave the agent's code. */
export class ContinueAsNew {
  readonly state: JsonValue;

  constructor(state: JsonValue) {
    this.state = state;
  }
}

/** Flushes earlier records first, so that no record of the old journal is taken for one of the new. */
export async function continueAsNew(
  { worker, activity, log }: TaskRunner,
  { cancelScope }: StepExecutor,
  state: JsonValue,
): Promise<never> {
  assertJson(state, "the state to continue from");
  worker.sizes.assert(state, "the state to continue from");
  await activity.whenSeated(cancelScope);
  await log.flush();
  throw new ContinueAsNew(state);
}
