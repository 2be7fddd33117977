import { BudgetExhaustedError } from "./budget-exhausted-error.ts";
import { CancellationError } from "./cancellation-error.ts";
import { MiddlewareTermination } from "./middleware-termination.ts";

/** Whether what was thrown stops the task, whoever catches it: a cancel, an exhausted budget, a termination. */
export function stopsTask(error: unknown): boolean {
  return (
    error instanceof CancellationError ||
    error instanceof BudgetExhaustedError ||
    error instanceof MiddlewareTermination
  );
}
