/**
 * The result of a call that may complete synchronously. Such a call never throws: a failure is always a rejected
 * promise. Most callers simply await it. A caller that must not wait for a microtask tests for `instanceof
 * Promise`, or uses `andThen`.
 */
export type MaybePromise<Value> = Value | Promise<Value>;

/** Calls `use` with the value: synchronously if the value is available, otherwise when its promise resolves. */
export function andThen<Value, Result>(
  value: MaybePromise<Value>,
  use: (value: Value) => MaybePromise<Result>,
): MaybePromise<Result> {
  return value instanceof Promise ? value.then(use) : use(value);
}

/** Calls `work` and returns its result. An error that `work` throws becomes a rejected promise. */
export function attempt<Value>(work: () => Value): Value | Promise<never> {
  try {
    return work();
  } catch (error) {
    return Promise.reject(error);
  }
}
