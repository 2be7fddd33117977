/**
 * What a step comes to later, told to the one who waits for it without a promise in between: every model call goes through here, and each
 * promise costs.
 */
export abstract class CallbackFuture<Value> {
  /** Calls back once, or never. */
  abstract begin(came: (value: Value) => void, failed: (error: unknown) => void): void;

  come(): Promise<Value> {
    return new Promise((resolve, reject) => {
      this.begin(resolve, reject);
    });
  }
}
