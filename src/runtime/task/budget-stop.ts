import type { ActiveStep } from "./active-step.ts";
import { BudgetExhaustedError, type Exhaustion } from "../../kernel/index.ts";

/** B1: a provider billed above the bound, and the run stops there: what the answer asks for is not done, until it is topped up. */
export function stopAtOverrun(open: ActiveStep): void {
  const { overrun } = open.runner.state.ledger;
  if (overrun !== null) throw exhausted(open, overrun);
}

export function exhausted(open: ActiveStep, exhaustion: Exhaustion): BudgetExhaustedError {
  const { dimension, limit, used, taskId } = exhaustion;
  open.emit({ type: "budget_exhausted", data: exhaustion });
  return new BudgetExhaustedError({ dimension, limit, used, details: { taskId } });
}
