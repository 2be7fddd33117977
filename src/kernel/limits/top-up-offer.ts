import type { TaskId } from "../base/identity.ts";
import { spendAmount } from "../errors/budget-exhausted-error.ts";
import type { Exhaustion, TopUp } from "./ledger.ts";

/** The `input` of a question of the kind `top_up`. */
export interface TopUpQuestion {
  /** The task into whose budget the call does not fit. It is the asking task or a task above it. */
  readonly taskId: TaskId;
  /** The limit that was reached, by the name that a top-up uses. */
  readonly name: "maxCostUsd" | "maxTokens" | "maxTurns";
  /** The limit, in dollars, tokens or turns. */
  readonly limit: number;
  /** The amount that the call needs above the limit. */
  readonly short: number;
  /** The amount that the question offers to add. At least `short`. */
  readonly amount: number;
  /** The question as a sentence. */
  readonly message: string;
}

/** A limit that was reached, and by how much it was too low. */
export interface ReachedLimit {
  readonly name: keyof TopUp;
  /** The limit, in dollars, turns, tokens or milliseconds. `null` if it is not known. */
  readonly limit: number | null;
  /** By how much the limit was too low for the refused call. 0 if that is not known. */
  readonly short: number;
}

const names = { costUsd: "maxCostUsd", tokens: "maxTokens", turns: "maxTurns" } as const;

/** Returns the question for a person when a call does not fit into the budget of a task. */
export function topUpQuestion({ taskId, dimension, limit, used, refused }: Exhaustion): TopUpQuestion {
  const name = names[dimension];
  const short = Math.max(0, refused === undefined ? used - limit : refused.reserved - refused.remaining);
  const amount = offeredAmount({ name, limit, short }, Infinity);
  const message = `The budget of ${spendAmount(dimension, limit)} does not cover the next call. Add ${spendAmount(dimension, amount)}, so that the task continues?`;
  return { taskId, name, limit, short, amount, message };
}

/** The amounts that are offered if the limit is zero or unknown. */
const leastOffer: TopUp = { maxCostUsd: 0.01, maxTurns: 1, maxTokens: 1_000, deadlineMs: 60_000 };

/**
 * Returns the amount that one click adds. It is half of the limit, or the missing amount if that is larger, rounded
 * up to a round number. It is at most `left`, which is the amount that the person may add.
 */
export function offeredAmount({ name, limit, short }: ReachedLimit, left: number): number {
  const wanted = Math.max((limit ?? 0) / 2, short);
  if (wanted === 0) return Math.min(left, leastOffer[name]);
  const isWhole = name === "maxTurns" || name === "maxTokens";
  const amount = name === "deadlineMs" ? roundTime(wanted) : roundUp(wanted);
  return Math.min(left, isWhole ? Math.ceil(amount) : amount);
}

/** Rounds an amount up to 1, 2, 3 or 5 times a power of ten. */
function roundUp(amount: number): number {
  const power = 10 ** Math.floor(Math.log10(amount));
  const digit = [1, 2, 3, 5].find((each) => each * power >= amount * (1 - 1e-9)) ?? 10;
  return Number((digit * power).toPrecision(6));
}

const [second, minute, hour] = [1_000, 60_000, 3_600_000];
const times = [1, 2, 5, 10, 15, 30];

/** Rounds a time in milliseconds up to a round number of seconds, minutes or hours. */
function roundTime(ms: number): number {
  const found = [second, minute, hour]
    .flatMap((unit) => times.map((count) => count * unit))
    .find((each) => each >= ms);
  return found ?? Math.ceil(ms / hour) * hour;
}
