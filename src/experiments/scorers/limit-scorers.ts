import { Fault, optionTable, readDuration, type Duration, type OptionKinds } from "../../kernel/index.ts";
import type { ScorerFunction, ScoredRun } from "../contract.ts";
import { namedKinds, namedScorer, type NamedOptions } from "./named-scorer.ts";

const limitTable = optionTable({ ...namedKinds } satisfies OptionKinds<NamedOptions>);

/**
 * Scores 1 if a case costs less than this number of dollars, and 0 otherwise. The cost of scorers is not included.
 * Fails if the cost is unknown.
 */
export function costBelow(usd: number, options: NamedOptions = {}): ScorerFunction {
  requirePositive("costBelow()", "number of dollars", usd);
  return below("costBelow", options, usd, knownCost, dollars);
}

/** Scores 1 if an agent and its children make fewer model calls than this number for a case, and 0 otherwise. */
export function turnsBelow(turns: number, options: NamedOptions = {}): ScorerFunction {
  requirePositive("turnsBelow()", "number of turns", turns);
  return below("turnsBelow", options, turns, (run) => run.turns, String);
}

/**
 * Scores 1 if a case takes less time than this limit, in milliseconds or as a text such as `"30s"`, and 0
 * otherwise. The time includes waits for a seat.
 */
export function timeBelow(limit: Duration, options: NamedOptions = {}): ScorerFunction {
  const ms = readDuration(limit, "timeBelow()");
  requirePositive("timeBelow()", "duration", ms);
  return below(
    "timeBelow",
    options,
    ms,
    (run) => run.durationMs,
    (each) => `${each} ms`,
  );
}

/** Scores 1 if the agent has answered, and 0 if it has failed or has stopped at one of its limits. */
export function completed(options: NamedOptions = {}): ScorerFunction {
  const { name = "completed" } = limitTable.read("completed()", options);
  return namedScorer(name, ({ run }) => {
    if (run.status === "completed") return 1;
    return { score: 0, reason: `the agent ended as ${run.status}` };
  });
}

function knownCost({ costUsd }: ScoredRun): number {
  if (costUsd !== null) return costUsd;
  throw new Fault(
    "invalid_argument",
    "the cost of the case is not known, because a model that it called has no known price; give the price with openRuntime({ prices })",
  );
}

function below(
  kind: string,
  options: NamedOptions,
  limit: number,
  measure: (run: ScoredRun) => number,
  words: (value: number) => string,
): ScorerFunction {
  const { name = kind } = limitTable.read(`${kind}()`, options);
  return namedScorer(name, ({ run }) => {
    const value = measure(run);
    if (value < limit) return 1;
    return { score: 0, reason: `${words(value)} is not below ${words(limit)}` };
  });
}

function requirePositive(owner: string, what: string, value: unknown): void {
  if (typeof value === "number" && value > 0 && Number.isFinite(value)) return;
  throw new Fault(
    "invalid_argument",
    `invalid ${what} ${String(value)} of ${owner}: expected a number above 0`,
  );
}

function dollars(usd: number): string {
  return `$${Number(usd.toPrecision(6))}`;
}
