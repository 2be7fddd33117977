import type { ExecutionBudget } from "./execution-budget.ts";
import type { Exhaustion } from "./ledger.ts";

export type BudgetVerdict =
  | { readonly allowed: true }
  | { readonly allowed: false; readonly exhaustion: Exhaustion };

/**
 * A read-only view of a task's budget for architectures. `ctx.llm` reserves and settles. The numbers are not journaled,
 * so decisions that a replay must repeat may not depend on them.
 */
export interface Budget {
  readonly limits: Omit<ExecutionBudget, "deadlineMs">;
  /** Whether the task and its ancestors have budget left for another turn. */
  allowsTurn(): BudgetVerdict;
  /** The amounts spent so far, including those of children (B6) and unreported ones (B3). */
  spent(): { readonly tokens: number; readonly costUsd: number; readonly turns: number };
}
