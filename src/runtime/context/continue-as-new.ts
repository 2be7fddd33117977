import { branchScope, stepAt, type JsonValue, type StepScope } from "../../kernel/index.ts";

/** Thrown by `continueAsNew` to leave the agent's code. */
export class ContinueAsNew {
  readonly state: JsonValue;

  constructor(state: JsonValue) {
    this.state = state;
  }
}

/** J8: each journal of a task has its own addresses, so that no idempotency key is used twice. */
export function journalScope(journal: number): StepScope {
  return journal === 0 ? "" : branchScope(stepAt("", journal - 1), "continued");
}
