import { Fault, hasCode } from "../base/fault.ts";
import type { JsonObject } from "../base/json-value.ts";

/** What ran out. `agents` is the headcount; the others are a task's or its ancestors' execution budget. */
export type BudgetDimension = "tokens" | "costUsd" | "turns" | "agents";

export interface BudgetExhaustion {
  readonly dimension: BudgetDimension;
  readonly limit: number;
  /** What is used, or would be with the request that was refused. */
  readonly used: number;
  /** Whose budget it was, who holds the seats, and the like. */
  readonly details?: JsonObject;
  readonly cause?: unknown;
}

const nounOf: Record<BudgetDimension, string> = {
  tokens: "Token",
  costUsd: "Cost",
  turns: "Turn",
  agents: "Agent",
};

/** A cap was reached (B5): names the dimension, its limit and the use, as in `Token budget exceeded: 4200 > 4000`. */
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
