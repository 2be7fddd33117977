/**
 * The later value of a step, passed to one receiver without a promise. Every model call uses it, and each promise costs
 * time and memory. Bench: `loop`, row "turn in memory".
 */
export abstract class CallbackFuture<Value> {
  /** Calls one of the callbacks once, or none of them. */
  abstract begin(came: (value: Value) => void, failed: (error: unknown) => void): void;

  come(): Promise<Value> {
    return new Promise((resolve, reject) => {
      this.begin(resolve, reject);
    });
  }
}
