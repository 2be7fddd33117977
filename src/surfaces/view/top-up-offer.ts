import { rootTaskId, type ExecutionBudget, type Failure, type TopUp } from "../../kernel/index.ts";

/** A limit of a budget that a top-up raises. */
export type TopUpName = keyof TopUp;

/** The limits in the order in which the surfaces show them. */
export const topUpNames = [
  "maxCostUsd",
  "maxTurns",
  "maxTokens",
  "deadlineMs",
] as const satisfies readonly TopUpName[];

/** What a stopped run needs to continue. */
export interface Lack {
  /** The task whose limit was reached. */
  readonly taskId: string;
  readonly name: TopUpName;
  /** The limit that was reached, in dollars, turns, tokens or milliseconds. `null` if the run does not say it. */
  readonly limit: number | null;
  /** By how much the limit was too low for the refused call. 0 if that is not known. */
  readonly short: number;
}

/** How a run ended. `budget` is that of its root task, or `null` if it is not known. */
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
 * What a run lacks that stopped at a limit. `null` if a top-up does not continue it: it stopped for another reason, at a cap
 * per day, or because it had too few seats.
 */
export function lackOf({ status, failure, budget }: EndedRun): Lack | null {
  if (status === "deadline_exceeded")
    return { taskId: rootTaskId, name: "deadlineMs", limit: budget?.deadlineMs ?? null, short: 0 };
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

/** What is offered if the limit is zero or not known. */
const leastOffer: TopUp = { maxCostUsd: 0.01, maxTurns: 1, maxTokens: 1_000, deadlineMs: 60_000 };

/**
 * The amount that one click adds: half of the limit, or what the refused call needed if that is more, rounded up to a figure
 * that reads well, and at most `left`, which is what the person may add.
 */
export function offeredAmount({ name, limit, short }: Lack, left: number): number {
  const wanted = Math.max((limit ?? 0) / 2, short);
  if (wanted === 0) return Math.min(left, leastOffer[name]);
  const isWhole = name === "maxTurns" || name === "maxTokens";
  const amount = name === "deadlineMs" ? roundTime(wanted) : roundUp(wanted);
  return Math.min(left, isWhole ? Math.ceil(amount) : amount);
}

/** Rounds up to 1, 2, 3 or 5 times a power of ten. */
function roundUp(amount: number): number {
  const power = 10 ** Math.floor(Math.log10(amount));
  const digit = [1, 2, 3, 5].find((each) => each * power >= amount * (1 - 1e-9)) ?? 10;
  return Number((digit * power).toPrecision(6));
}

const [second, minute, hour] = [1_000, 60_000, 3_600_000];
const times = [1, 2, 5, 10, 15, 30];

/** Rounds a time in milliseconds up to a figure of seconds, minutes or hours. */
function roundTime(ms: number): number {
  const found = [second, minute, hour]
    .flatMap((unit) => times.map((count) => count * unit))
    .find((each) => each >= ms);
  return found ?? Math.ceil(ms / hour) * hour;
}

/** An amount of a limit in words: `$0.40`, `5 turns`, `2,000 tokens`, `5 min`. */
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

/** At least two decimals, and as many as the amount needs, up to six. */
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
