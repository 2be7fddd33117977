import { is, optionTable, type OptionKinds } from "../base/option-table.ts";

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

const dimensions = optionTable({
  maxTokens: is.integer({ from: 0, or: [null, "no limit"], default: null }),
  maxCostUsd: is.number({ from: 0, finite: true, or: [null, "no limit"], default: null }),
  maxTurns: is.integer({ from: 0, or: [null, "no limit"], default: null }),
  deadlineMs: is.number({ from: 0, finite: true, or: [null, "no limit"], default: null }),
} satisfies OptionKinds<ExecutionBudget>);

export function executionBudget(options: Partial<ExecutionBudget> = {}): ExecutionBudget {
  // The default object is valid and frozen, so it needs no check.
  if (options === unlimitedBudget) return unlimitedBudget;
  const { maxTokens, maxCostUsd, maxTurns, deadlineMs } = dimensions.read("budget", options);
  return budgetOf(positive(maxTokens), positive(maxCostUsd), positive(maxTurns), positive(deadlineMs));
}

/** B6: the budget of a child: in each dimension the smaller of the parent's limit and the child's own. */
export function tightenBudget(parent: ExecutionBudget, own: Partial<ExecutionBudget>): ExecutionBudget {
  const wanted = executionBudget(own);
  return budgetOf(
    smaller(parent.maxTokens, wanted.maxTokens),
    smaller(parent.maxCostUsd, wanted.maxCostUsd),
    smaller(parent.maxTurns, wanted.maxTurns),
    smaller(parent.deadlineMs, wanted.deadlineMs),
  );
}

/** Creates a budget. Budgets without any limit share one object. */
function budgetOf(
  maxTokens: number | null,
  maxCostUsd: number | null,
  maxTurns: number | null,
  deadlineMs: number | null,
): ExecutionBudget {
  if (maxTokens === null && maxCostUsd === null && maxTurns === null && deadlineMs === null)
    return unlimitedBudget;
  return Object.freeze({ maxTokens, maxCostUsd, maxTurns, deadlineMs });
}

/** Returns 0 for -0. */
function positive(limit: number | null): number | null {
  return limit === null ? null : limit + 0;
}

function smaller(one: number | null, other: number | null): number | null {
  if (one === null) return other;
  return other === null ? one : Math.min(one, other);
}
