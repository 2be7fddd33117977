/** The value of a step that is computed synchronously when the step is recorded. */
export abstract class ComputedAtCommit {
  abstract settle(): unknown;
}

/** The result of a step's body: its value, or a way to compute the value when the step is recorded. */
export type Done<Value> = Value | (() => Value) | ComputedAtCommit;
