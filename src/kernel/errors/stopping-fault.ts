import { BudgetExhaustedError } from "./budget-exhausted-error.ts";
import { CancellationError } from "./cancellation-error.ts";
import { Fault } from "../base/fault.ts";
import { MiddlewareTermination } from "./middleware-termination.ts";

/**
 * Whether an error must end the task even if code around the call could handle it: a cancel, an exhausted budget, a
 * termination, or middleware that violates its contract, which a model cannot fix.
 */
export function stopsTask(error: unknown): boolean {
  return (
    error instanceof CancellationError ||
    error instanceof BudgetExhaustedError ||
    error instanceof MiddlewareTermination ||
    (Fault.is(error) && error.code === "middleware_misuse")
  );
}
