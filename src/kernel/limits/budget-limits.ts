/**
 * Limits on what one task and its descendants may spend (B6). Frozen. B2: `null` means unlimited and zero means zero;
 * negative values and NaN are refused.
 */
export interface ExecutionBudget {
  /** Maximum number of model tokens, input and output. */
  readonly maxTokens: number | null;
  readonly maxCostUsd: number | null;
  /**
   * Maximum number of model calls of the task and its descendants. The agent option `maxTurns` limits the turns of one
   * agent's loop instead.
   */
  readonly maxTurns: number | null;
  /**
   * B5: maximum time in milliseconds from the creation of the task, that is from `submit` or `spawn`. The clock runs while the task is
   * pending, running or suspended, so it includes the time that the task waits for a worker or a seat. It stops while the task is paused
   * or waits for a person. `RunMeta` enforces it, not the ledger.
   */
  readonly deadlineMs: number | null;
}

export const unlimitedBudget: ExecutionBudget = Object.freeze({
  maxTokens: null,
  maxCostUsd: null,
  maxTurns: null,
  deadlineMs: null,
});

/** The smaller limit of two budgets in each dimension. Checks nothing, so that the page does without the checks. */
export function smallerBudget(one: ExecutionBudget, other: ExecutionBudget): ExecutionBudget {
  return budgetOf(
    smaller(one.maxTokens, other.maxTokens),
    smaller(one.maxCostUsd, other.maxCostUsd),
    smaller(one.maxTurns, other.maxTurns),
    smaller(one.deadlineMs, other.deadlineMs),
  );
}

/** Creates a budget. Budgets without any limit share one object. */
export function budgetOf(
  maxTokens: number | null,
  maxCostUsd: number | null,
  maxTurns: number | null,
  deadlineMs: number | null,
): ExecutionBudget {
  if (maxTokens === null && maxCostUsd === null && maxTurns === null && deadlineMs === null)
    return unlimitedBudget;
  return Object.freeze({ maxTokens, maxCostUsd, maxTurns, deadlineMs });
}

function smaller(one: number | null, other: number | null): number | null {
  if (one === null) return other;
  return other === null ? one : Math.min(one, other);
}
