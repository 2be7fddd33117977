import { Fault, hasCode } from "../base/fault.ts";
import type { JsonObject } from "../base/json-value.ts";

/**
 * The dimension that is used up. `agents` counts the seats of a run. The other dimensions belong to the execution
 * budget of a task or of a task above it.
 */
export type BudgetDimension = "tokens" | "costUsd" | "turns" | "agents";

/** A refused reservation. Amounts are in the unit of its dimension: tokens, dollars or turns. */
export interface RefusedReservation {
  /** The lowest amount that the call had to reserve: its input and one output token. */
  readonly reserved: number;
  /** What was left of the cap. */
  readonly remaining: number;
  /** The amount spent of the cap, including `unreported`. */
  readonly spent: number;
  /** B3: the part of `spent` for which no provider reported usage. */
  readonly unreported: number;
}

/** B7: a cap per day or month that is exhausted. Amounts are in USD. */
export interface ExhaustedCap {
  /** The option of `caps`, such as `perUserPerDayUsd`. */
  readonly name: string;
  /** The tenant of the run, or `null`. */
  readonly tenantId: string | null;
  /** The user of the run, or `null`. */
  readonly userId: string | null;
  /** The UTC day of the refused call, as `2026-11-16`. */
  readonly day: string;
  /** Name of the agent that the cap limits. Absent if the cap does not count by agent. */
  readonly agent?: string;
  readonly limitUsd: number;
  /** The amount spent of the cap, including what the run itself has spent. */
  readonly spentUsd: number;
  /**
   * The amount of the cap that open calls and other runs in progress have reserved. They return what they do not
   * spend.
   */
  readonly heldUsd: number;
  /** The least that the call had to reserve. */
  readonly neededUsd: number;
  /** When the cap resets: the start of the next UTC day or month, as an ISO 8601 time. */
  readonly resetsAt: string;
}

export interface BudgetExhaustion {
  readonly dimension: BudgetDimension;
  readonly limit: number;
  /** The amount in use, or the amount that the refused request would have led to. */
  readonly used: number;
  /** The reservation that did not fit. Absent if a bill or the number of seats exceeded the cap. */
  readonly refused?: RefusedReservation;
  /** B7: the spending cap that is exhausted. Absent if the budget of a task is exhausted. */
  readonly cap?: ExhaustedCap;
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
 * 4000`. For a refused reservation it names the amount of the reservation and the remaining amount, as in
 * `reservation of 0.1226 USD does not fit into the remaining 0.1 USD (spent 0)`.
 */
export class BudgetExhaustedError extends Fault {
  declare readonly code: "budget_exhausted";
  readonly dimension: BudgetDimension;
  readonly limit: number;
  readonly used: number;
  /** The reservation that did not fit. `null` if a bill or the number of seats exceeded the cap. */
  readonly refused: RefusedReservation | null;
  /** B7: the spending cap that is exhausted. `null` if the budget of a task is exhausted. */
  readonly cap: ExhaustedCap | null;

  constructor({ details, cause, ...exhaustion }: BudgetExhaustion) {
    const { dimension, limit, used, refused, cap } = exhaustion;
    const facts = {
      ...details,
      dimension,
      limit,
      used,
      ...(refused && { refused: { ...refused } }),
      ...(cap && { cap: { ...cap } }),
    };
    const options = { details: facts, ...(cause !== undefined && { cause }) };
    super("budget_exhausted", describeExhaustion(exhaustion), options, true);
    this.refused = refused ?? null;
    this.cap = cap ?? null;
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

/** Says which limit was reached, and by how much. */
export function describeExhaustion({
  dimension,
  limit,
  used,
  refused,
  cap,
}: Omit<BudgetExhaustion, "details" | "cause">): string {
  if (cap !== undefined) return describeExhaustedCap(cap);
  return refused === undefined
    ? `${nounOf[dimension]} budget exceeded: ${used} > ${limit}`
    : describeRefusedReservation(dimension, refused);
}

function describeExhaustedCap({ name, tenantId, userId, agent, ...cap }: ExhaustedCap): string {
  const calls = agent === undefined ? "" : `calls of agent ${agent} in `;
  const tenant = tenantId === null ? "without a tenant" : `of tenant ${tenantId}`;
  const user = userId === null ? "without a user" : `of user ${userId}`;
  const { day, limitUsd, spentUsd, heldUsd, neededUsd, resetsAt } = cap;
  const held = heldUsd === 0 ? "" : `, ${decimal(heldUsd)} USD are held by calls and runs in progress`;
  return `cap ${name} of ${decimal(limitUsd)} USD is exhausted for ${calls}a run ${user} and ${tenant} on ${day} (UTC): ${decimal(spentUsd)} USD are spent${held}, and the call needs up to ${decimal(neededUsd)} USD; the cap resets at ${resetsAt}; then resume the run`;
}

function describeRefusedReservation(
  dimension: BudgetDimension,
  { reserved, remaining, spent, unreported }: RefusedReservation,
): string {
  const lost = unreported === 0 ? "" : `, ${decimal(unreported)} of it unreported`;
  return `reservation of ${spendAmount(dimension, reserved)} does not fit into the remaining ${spendAmount(dimension, remaining)} (spent ${decimal(spent)}${lost})`;
}

/** Formats an amount with its unit, such as `0.25 USD` or `1 turn`. */
export function spendAmount(dimension: BudgetDimension, value: number): string {
  if (dimension === "costUsd") return `${decimal(value)} USD`;
  return `${value} ${value === 1 ? dimension.slice(0, -1) : dimension}`;
}

/** Formats a number without an exponent. Money is counted in nano-dollars, so that nine decimals are exact. */
function decimal(value: number): string {
  return Number.isInteger(value) ? `${value}` : value.toFixed(9).replace(/0+$/, "");
}
