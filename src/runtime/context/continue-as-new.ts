import { branchScope, stepAt, type JsonValue, type StepScope } from "../../kernel/index.ts";

/** Thrown by `continueAsNew` to leave the agent's code; never seen by it unless it catches everything. */
export class ContinueAsNew {
  readonly state: JsonValue;

  constructor(state: JsonValue) {
    this.state = state;
  }
}

/** Every journal of a task has addresses of its own, so that idempotency keys are never used twice. */
export function journalScope(journal: number): StepScope {
  return journal === 0 ? "" : branchScope(stepAt("", journal - 1), "continued");
}
