import { assertJson, branchScope, stepAt, type JsonValue, type StepScope } from "../../kernel/index.ts";
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

/** J8: each journal of a task has its own addresses, so that no idempotency key is used twice. */
export function journalScope(journal: number): StepScope {
  return journal === 0 ? "" : branchScope(stepAt("", journal - 1), "continued");
}
