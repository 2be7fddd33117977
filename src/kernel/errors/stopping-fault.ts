import { BudgetExhaustedError } from "./budget-exhausted-error.ts";
import { CancellationError } from "./cancellation-error.ts";
import { Fault } from "../base/fault.ts";
import { MiddlewareTermination } from "./middleware-termination.ts";

/**
 * Whether what was thrown stops the task, whoever catches it: a cancel, an exhausted budget, a termination, or a layer that breaks the
 * rules, which is nobody's failure but its own and nothing a model can mend.
 */
export function stopsTask(error: unknown): boolean {
  return (
    error instanceof CancellationError ||
    error instanceof BudgetExhaustedError ||
    error instanceof MiddlewareTermination ||
    (Fault.is(error) && error.code === "middleware_misuse")
  );
}
