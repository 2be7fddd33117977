import type { JsonValue } from "../kernel/index.ts";

/** Thrown by `continueAsNew` to leave the agent's code; never seen by it unless it catches everything. */
export class ContinueAsNew {
  readonly state: JsonValue;

  constructor(state: JsonValue) {
    this.state = state;
  }
}
