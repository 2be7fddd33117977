import { Fault, hasCode } from "../base/fault.ts";
import type { JsonObject } from "../base/json-value.ts";

/**
 * The dimension that is used up. `agents` is the headcount; the others belong to the execution budget of a task or of
 * its ancestors.
 */
export type BudgetDimension = "tokens" | "costUsd" | "turns" | "agents";

/** A reservation that was refused, in the unit of its dimension: tokens, dollars or turns. */
export interface RefusedReservation {
  /** The least that the call had to reserve: its input and one token of output. */
  readonly reserved: number;
  /** What was left of the cap. */
  readonly remaining: number;
  /** What was spent of the cap, including `unreported`. */
  readonly spent: number;
  /** B3: the part of `spent` for which no provider reported usage. */
  readonly unreported: number;
}

export interface BudgetExhaustion {
  readonly dimension: BudgetDimension;
  readonly limit: number;
  /** The amount in use, or the amount that the refused request would have led to. */
  readonly used: number;
  /** The reservation that did not fit. Absent if the cap was passed by a bill or by seats. */
  readonly refused?: RefusedReservation;
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
 * 4000`. For a refused reservation it names what was to be reserved and what was left, as in `reservation of 0.1226 USD
 * does not fit into the remaining 0.1 USD (spent 0)`.
 */
export class BudgetExhaustedError extends Fault {
  declare readonly code: "budget_exhausted";
  readonly dimension: BudgetDimension;
  readonly limit: number;
  readonly used: number;
  /** The reservation that did not fit. `null` if the cap was passed by a bill or by seats. */
  readonly refused: RefusedReservation | null;

  constructor({ dimension, limit, used, refused, details, ...options }: BudgetExhaustion) {
    const message =
      refused === undefined
        ? `${nounOf[dimension]} budget exceeded: ${used} > ${limit}`
        : describeRefusedReservation(dimension, refused);
    const facts = { ...details, dimension, limit, used, ...(refused && { refused: { ...refused } }) };
    super("budget_exhausted", message, { ...options, details: facts }, true);
    this.refused = refused ?? null;
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

function describeRefusedReservation(
  dimension: BudgetDimension,
  { reserved, remaining, spent, unreported }: RefusedReservation,
): string {
  const lost = unreported === 0 ? "" : `, ${decimal(unreported)} of it unreported`;
  return `reservation of ${amount(dimension, reserved)} does not fit into the remaining ${amount(dimension, remaining)} (spent ${decimal(spent)}${lost})`;
}

function amount(dimension: BudgetDimension, value: number): string {
  if (dimension === "costUsd") return `${decimal(value)} USD`;
  return `${value} ${value === 1 ? dimension.slice(0, -1) : dimension}`;
}

/** A number without an exponent. Money is counted in nano-dollars, so nine decimals are exact. */
function decimal(value: number): string {
  return Number.isInteger(value) ? `${value}` : value.toFixed(9).replace(/0+$/, "");
}
