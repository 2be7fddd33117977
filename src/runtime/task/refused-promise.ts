import { Fault } from "../../kernel/index.ts";

/** Whether a value from code without types is a promise. */
export function isPromise(value: unknown): value is Promise<unknown> {
  return value instanceof Promise;
}

/** Creates the fault for a promise where a value is needed. `where` names the place. */
export function refusedPromise(promise: Promise<unknown>, where: string): Fault {
  // Without a handler, a rejection would end the process. The fault already says that the value is not used.
  promise.catch(() => undefined);
  return new Fault("invalid_argument", `${where} is a promise: await it first, and pass its value`);
}
