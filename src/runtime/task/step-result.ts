/** What a step came to but for what is done in the breath in which it is recorded. */
export abstract class ComputedAtCommit {
  abstract settle(): unknown;
}

/** What a step's body comes to: its value, or what gives it when the step is recorded. */
export type Done<Value> = Value | (() => Value) | ComputedAtCommit;
