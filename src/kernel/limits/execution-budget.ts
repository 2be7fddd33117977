import { is, optionTable, type OptionKinds } from "../base/option-table.ts";
import { budgetOf, smallerBudget, unlimitedBudget, type ExecutionBudget } from "./budget-limits.ts";

export { type ExecutionBudget, unlimitedBudget } from "./budget-limits.ts";

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

/**
 * B6: returns the budget of a child. In each dimension it is the lower of the parent's limit and the child's own
 * limit.
 */
export function tightenBudget(parent: ExecutionBudget, own: Partial<ExecutionBudget>): ExecutionBudget {
  return smallerBudget(parent, executionBudget(own));
}

/** Returns 0 for -0. */
function positive(limit: number | null): number | null {
  return limit === null ? null : limit + 0;
}
