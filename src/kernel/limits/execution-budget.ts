import { describeValue } from "../base/describe-value.ts";
import { Fault } from "../base/fault.ts";

/**
 * One task's allowance. Frozen. B2: `null` is unlimited, zero is zero, and nothing negative or NaN gets in. Spend of
 * children counts as well (B6).
 */
export interface ExecutionBudget {
  /** Model tokens, input and output. */
  readonly maxTokens: number | null;
  readonly maxCostUsd: number | null;
  /** Model round trips. */
  readonly maxTurns: number | null;
  /** Wall-clock time from the start of the run. Enforced by `RunMeta`, not by the ledger. */
  readonly deadlineMs: number | null;
}

export const unlimitedBudget: ExecutionBudget = Object.freeze({
  maxTokens: null,
  maxCostUsd: null,
  maxTurns: null,
  deadlineMs: null,
});

const dimensions = ["maxTokens", "maxCostUsd", "maxTurns", "deadlineMs"] as const;
const whole: ReadonlySet<string> = new Set(["maxTokens", "maxTurns"]);

export function executionBudget(options: Partial<ExecutionBudget> = {}): ExecutionBudget {
  // Made here, and frozen since.
  if (options === unlimitedBudget) return unlimitedBudget;
  for (const key of Object.keys(options)) {
    if (!Object.hasOwn(unlimitedBudget, key)) {
      throw new Fault("invalid_argument", `${key} is not a budget dimension: use ${dimensions.join(", ")}`);
    }
  }
  const { maxTokens = null, maxCostUsd = null, maxTurns = null, deadlineMs = null } = options;
  return budgetOf(
    checked("maxTokens", maxTokens),
    checked("maxCostUsd", maxCostUsd),
    checked("maxTurns", maxTurns),
    checked("deadlineMs", deadlineMs),
  );
}

/** B6: what a child may have: in each dimension the smaller of its parent's limit and its own. */
export function tightenBudget(parent: ExecutionBudget, own: Partial<ExecutionBudget>): ExecutionBudget {
  const wanted = executionBudget(own);
  return budgetOf(
    smaller(parent.maxTokens, wanted.maxTokens),
    smaller(parent.maxCostUsd, wanted.maxCostUsd),
    smaller(parent.maxTurns, wanted.maxTurns),
    smaller(parent.deadlineMs, wanted.deadlineMs),
  );
}

/** One and the same for all that have no limit. */
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

function checked(dimension: keyof ExecutionBudget, limit: unknown): number | null {
  if (limit === null) return null;
  const fits = typeof limit === "number" && Number.isFinite(limit) && limit >= 0;
  if (!fits || (whole.has(dimension) && !Number.isSafeInteger(limit))) {
    const kind = whole.has(dimension) ? "an integer" : "a finite number";
    throw new Fault(
      "invalid_argument",
      `${dimension} is ${describeValue(limit)}: it must be ${kind} from 0, or null for no limit`,
    );
  }
  return limit + 0;
}

function smaller(one: number | null, other: number | null): number | null {
  if (one === null) return other;
  return other === null ? one : Math.min(one, other);
}
