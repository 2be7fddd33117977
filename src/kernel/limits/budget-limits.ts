/**
 * Limits on what one task and its descendants may spend (B6). Frozen. B2: `null` means unlimited and zero means
 * zero; negative values and NaN throw.
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
   * B5: maximum time in milliseconds from the creation of the task, which is `submit` or `spawn`. The time in which
   * the task is pending, running or suspended counts, also while it waits for a worker or a seat. The time in which
   * it is paused or waits for a person does not count. `RunMeta` enforces this limit, not the ledger.
   */
  readonly deadlineMs: number | null;
}

export const unlimitedBudget: ExecutionBudget = Object.freeze({
  maxTokens: null,
  maxCostUsd: null,
  maxTurns: null,
  deadlineMs: null,
});

/**
 * Returns a budget with the smaller limit of two budgets in each dimension. It makes no checks, so that the page in
 * the browser need not load them.
 */
export function smallerBudget(one: ExecutionBudget, other: ExecutionBudget): ExecutionBudget {
  return budgetOf(
    smaller(one.maxTokens, other.maxTokens),
    smaller(one.maxCostUsd, other.maxCostUsd),
    smaller(one.maxTurns, other.maxTurns),
    smaller(one.deadlineMs, other.deadlineMs),
  );
}

/** Creates a budget. All budgets without any limit are the same object. */
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
