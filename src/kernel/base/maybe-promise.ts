/**
 * The result of a call that may complete synchronously. Such a call never throws: a failure is always a rejected promise. A
 * caller that does not mind waiting for a microtask awaits it; other callers test for `instanceof Promise`, or use `andThen`.
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
