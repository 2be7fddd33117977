import { Fault, hasCode, type FaultOptions } from "../base/fault.ts";
import { readProperty } from "../base/read-property.ts";

/**
 * An error that a retry cannot fix, such as a card that was declined. A step that throws it is not retried, and a run
 * whose code throws it fails without a restart. An error of another class with the property `retryable: false` has the
 * same effect.
 *
 * @example
 * ```ts
 * import { FatalError, workflow } from "reeve/workflow";
 *
 * declare function charge(cents: number): Promise<"paid" | "declined">;
 *
 * const order = workflow("order", async (ctx) => {
 *   await ctx.step("charge", async () => {
 *     if ((await charge(900)) === "declined") throw new FatalError("the card was declined");
 *   });
 * });
 * ```
 */
export class FatalError extends Fault {
  declare readonly code: "fatal";

  constructor(message: string, options: FaultOptions = {}) {
    super("fatal", message, options, true);
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return this === FatalError ? hasCode(value, "fatal") : super[Symbol.hasInstance](value);
  }
}

/** Whether the code that threw an error has marked it as one that a retry cannot fix. */
export function isMarkedFinal(error: unknown): boolean {
  if (readProperty(error, "retryable") === false) return true;
  return Fault.is(error) && error.code === "internal" && readProperty(error.cause, "retryable") === false;
}
