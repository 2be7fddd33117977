import type { ActiveStep } from "./active-step.ts";
import { BudgetExhaustedError, type Exhaustion } from "../../kernel/index.ts";

/** B1: throws if a provider billed above its bound. The run then stops here until it is topped up, and what the reply asks for is not done. */
export function stopAtOverrun(step: ActiveStep): void {
  const { overrun } = step.runner.state.ledger;
  if (overrun !== null) throw exhausted(step, overrun);
}

/** Emits `budget_exhausted` and returns the error to throw. */
export function exhausted(step: ActiveStep, exhaustion: Exhaustion): BudgetExhaustedError {
  const { dimension, limit, used, refused, cap, taskId } = exhaustion;
  step.emit({ type: "budget_exhausted", data: exhaustion });
  return new BudgetExhaustedError({
    dimension,
    limit,
    used,
    ...(refused && { refused }),
    ...(cap && { cap }),
    details: { taskId },
  });
}
