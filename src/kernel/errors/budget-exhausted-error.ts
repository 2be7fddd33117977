import { Fault, hasCode } from "../base/fault.ts";
import type { JsonObject } from "../base/json-value.ts";

/**
 * The dimension that is used up. `agents` is the headcount; the others belong to the execution budget of a task or of
 * its ancestors.
 */
export type BudgetDimension = "tokens" | "costUsd" | "turns" | "agents";

export interface BudgetExhaustion {
  readonly dimension: BudgetDimension;
  readonly limit: number;
  /** The amount in use, or the amount that the refused request would have led to. */
  readonly used: number;
  /** More facts, such as the task whose budget it is or the tasks that hold the seats. */
  readonly details?: JsonObject;
  readonly cause?: unknown;
}

const nounOf: Record<BudgetDimension, string> = {
  tokens: "Token",
  costUsd: "Cost",
  turns: "Turn",
  agents: "Agent",
};

/**
 * B5: a cap was reached. The error names the dimension, its limit and the use, as in `Token budget exceeded: 4200 >
 * 4000`.
 */
export class BudgetExhaustedError extends Fault {
  declare readonly code: "budget_exhausted";
  readonly dimension: BudgetDimension;
  readonly limit: number;
  readonly used: number;

  constructor({ dimension, limit, used, details, ...options }: BudgetExhaustion) {
    const message = `${nounOf[dimension]} budget exceeded: ${used} > ${limit}`;
    super("budget_exhausted", message, { ...options, details: { ...details, dimension, limit, used } }, true);
    this.dimension = dimension;
    this.limit = limit;
    this.used = used;
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return this === BudgetExhaustedError
      ? hasCode(value, "budget_exhausted")
      : super[Symbol.hasInstance](value);
  }
}
