import type { ExecutionBudget } from "./execution-budget.ts";
import type { Exhaustion } from "./ledger.ts";
import type { Usage } from "./usage.ts";

export type BudgetVerdict =
  | { readonly allowed: true; readonly warnings: readonly Exhaustion[] }
  | { readonly allowed: false; readonly exhaustion: Exhaustion };

/**
 * A task's budget as an architecture sees it: a view of the numbers the runtime holds. It does not count itself;
 * `ctx.llm` reserves and settles.
 */
export interface Budget {
  readonly limits: ExecutionBudget;
  /** Whether another turn may start. */
  allowsTurn(): BudgetVerdict;
  spent(): Usage;
}
