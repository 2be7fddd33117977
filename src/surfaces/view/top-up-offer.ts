import {
  rootTaskId,
  type ExecutionBudget,
  type Failure,
  type ReachedLimit,
  type TopUp,
} from "../../kernel/index.ts";

/** A budget limit that a top-up can raise. */
export type TopUpName = keyof TopUp;

/** The limits in the order of their display. */
export const topUpNames = [
  "maxCostUsd",
  "maxTurns",
  "maxTokens",
  "deadlineMs",
] as const satisfies readonly TopUpName[];

/** What a stopped run needs to continue. */
export interface Lack extends ReachedLimit {
  /** The task whose limit was reached. */
  readonly taskId: string;
}

/** The end of a run. `budget` is the budget of its root task, or `null` if unknown. */
export interface EndedRun {
  readonly status: string;
  readonly failure: Failure | null;
  readonly budget: Partial<ExecutionBudget> | null;
}

/** Whether a run with this status stopped at a limit that a top-up may raise. */
export function isStoppedAtLimit(status: string): boolean {
  return status === "budget_exhausted" || status === "deadline_exceeded";
}

const names: Readonly<Record<string, TopUpName>> = {
  costUsd: "maxCostUsd",
  turns: "maxTurns",
  tokens: "maxTokens",
};

/**
 * Returns what a run that stopped at a limit needs to continue. `null` if a top-up does not continue it, because it
 * stopped for another reason, at a spending cap, or because it had too few seats.
 */
export function lackOf({ status, failure, budget }: EndedRun): Lack | null {
  if (status === "deadline_exceeded") return lackOfTime(failure, budget?.deadlineMs ?? null);
  if (status !== "budget_exhausted") return null;
  const { dimension, limit, used, taskId, cap, refused } = failure?.details ?? {};
  if (cap !== undefined) return null;
  // An error of an earlier version does not name the limit. Money was the only one that could be topped up then.
  const name = typeof dimension === "string" ? names[dimension] : "maxCostUsd";
  if (name === undefined) return null;
  const known = typeof limit === "number" ? limit : null;
  const { reserved, remaining } = (refused ?? {}) as {
    readonly reserved?: number;
    readonly remaining?: number;
  };
  const short =
    reserved !== undefined && remaining !== undefined
      ? reserved - remaining
      : known !== null && typeof used === "number"
        ? used - known
        : 0;
  return {
    taskId: typeof taskId === "string" ? taskId : rootTaskId,
    name,
    limit: known ?? budget?.[name] ?? null,
    short: Math.max(0, short),
  };
}

/**
 * Returns the time that a run needs after its deadline: the time by which it has exceeded the deadline, and
 * additional time to work.
 */
function lackOfTime(failure: Failure | null, known: number | null): Lack {
  const time = timeOf(failure);
  const limit = time?.limit ?? known;
  const over = time === null ? 0 : Math.max(0, time.used - time.limit);
  return {
    taskId: rootTaskId,
    name: "deadlineMs",
    limit,
    short: over === 0 ? 0 : over + (limit ?? 0) / 2,
  };
}

/**
 * Returns the time limit at which a run stopped and the time that it used, in milliseconds. `null` if the error
 * does not contain them.
 */
export function timeOf(
  failure: Pick<Failure, "details"> | null,
): { readonly limit: number; readonly used: number } | null {
  const { dimension, limit, used } = failure?.details ?? {};
  if (dimension !== "deadlineMs" || typeof limit !== "number" || typeof used !== "number") return null;
  return { limit, used };
}

/** Describes the amounts that a top-up added to the limits of a task: `$0.50 and 5 min of time`. */
export function addedWords(add: Partial<TopUp>): string {
  const parts = topUpNames.flatMap((name) => {
    const amount = add[name] ?? 0;
    if (amount <= 0) return [];
    return [`${amountWords(name, amount)}${name === "deadlineMs" ? " of time" : ""}`];
  });
  return parts.length < 2 ? parts.join("") : `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`;
}

const [second, minute, hour] = [1_000, 60_000, 3_600_000];

/** Describes an amount of a limit: `$0.40`, `5 turns`, `2,000 tokens`, `5 min`. */
export function amountWords(name: TopUpName, amount: number): string {
  switch (name) {
    case "maxCostUsd":
      return `$${dollars(amount)}`;
    case "maxTurns":
      return counted(amount, "turn");
    case "maxTokens":
      return counted(amount, "token");
    case "deadlineMs":
      return timeWords(amount);
  }
}

/** Formats an amount of dollars with at least two decimals, and up to six if they are needed. */
function dollars(amount: number): string {
  return amount.toFixed(6).replace(/0{1,4}$/u, "");
}

function counted(amount: number, noun: string): string {
  return `${amount.toLocaleString("en-US")} ${noun}${amount === 1 ? "" : "s"}`;
}

function timeWords(ms: number): string {
  if (ms % hour === 0 && ms > 0) return `${ms / hour} h`;
  if (ms % minute === 0 && ms > 0) return `${ms / minute} min`;
  return ms >= second ? `${Number((ms / second).toFixed(1))} s` : `${ms} ms`;
}
