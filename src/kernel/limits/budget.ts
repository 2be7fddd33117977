import type { ExecutionBudget } from "./execution-budget.ts";
import type { Exhaustion } from "./ledger.ts";

export type BudgetVerdict =
  | { readonly allowed: true }
  | { readonly allowed: false; readonly exhaustion: Exhaustion };

/**
 * A task's budget as an architecture sees it: a view of the numbers the runtime holds. It does not count itself;
 * `ctx.llm` reserves and settles. To look at: what a replay must decide the same way may not depend on it.
 */
export interface Budget {
  readonly limits: Omit<ExecutionBudget, "deadlineMs">;
  /** Whether anything is left for another turn, here and above. */
  allowsTurn(): BudgetVerdict;
  /** What children spent, and what was lost, included (B3, B6). */
  spent(): { readonly tokens: number; readonly costUsd: number; readonly turns: number };
}
