import {
  CancellationError,
  describeValue,
  Fault,
  is,
  nearestJson,
  readProperty,
  type HostedAgent,
} from "../kernel/index.ts";
import type { DurableScorer, Score, Scorer, ScorerFunction, ScorerOutput } from "./contract.ts";

/** A scorer with the name under which reports and gates know it. */
export interface NamedScorer {
  readonly name: string;
  readonly scorer: Scorer;
}

/** Whether the scorer does durable work of its own. */
export function isDurable(scorer: Scorer): scorer is DurableScorer {
  return typeof scorer !== "function";
}

/** Agents that the scorers call. */
export function agentsOf(scorers: readonly NamedScorer[]): readonly HostedAgent[] {
  return scorers.flatMap(({ scorer }) => (isDurable(scorer) ? (scorer.agents ?? []) : []));
}

/** Checks the scorers of an experiment. `owner` names it in errors. */
export function readScorers(owner: string, scorers: unknown): readonly NamedScorer[] {
  is.list({ required: true, hint: "use scorers: [exactMatch()]" }).check?.(scorers, "scorers", owner);
  const given = scorers as readonly unknown[];
  if (given.length === 0)
    throw new Fault(
      "invalid_argument",
      `${owner} has no scorers: expected at least one; use scorers: [({ output, expected }) => output === expected]`,
    );
  const named = given.map((scorer, index) => ({
    name: nameOf(owner, scorer, index),
    scorer: scorer as Scorer,
  }));
  for (const [index, { name }] of named.entries())
    if (named.findIndex((other) => other.name === name) !== index)
      throw new Fault(
        "invalid_argument",
        `duplicate scorer ${JSON.stringify(name)} of ${owner}: reports and gates name a scorer by its name; give one of the two another name`,
      );
  return named;
}

function nameOf(owner: string, scorer: unknown, index: number): string {
  const place = `entry ${index + 1} of scorers of ${owner}`;
  const isScorer = typeof scorer === "function" || typeof readProperty(scorer, "score") === "function";
  if (!isScorer)
    throw new Fault(
      "invalid_argument",
      `invalid ${place}: expected a function, or an object with name and score(), not ${describeValue(scorer)}`,
    );
  const name = readProperty(scorer, "name");
  if (typeof name === "string" && name.trim() !== "") return name;
  throw new Fault(
    "invalid_argument",
    `${place} has no name, by which reports and gates would name it; use function name({ output, expected }) { ... }`,
  );
}

/** Calls a scorer that is a function. What it throws is its error, and never a score. */
export async function callScorer(
  name: string,
  scorer: ScorerFunction,
  given: Parameters<ScorerFunction>[0],
): Promise<Score> {
  try {
    return readScore(name, await scorer(given));
  } catch (error) {
    return failedScore(error);
  }
}

/** The result of a scorer that failed with this error. */
export function failedScore(error: unknown): Score {
  const { message } = Fault.from(error);
  return { score: null, reason: null, metadata: null, error: message };
}

/** Whether an error of a durable scorer ends the work of its run, and is not the scorer's own. */
export function isStop(error: unknown): boolean {
  const fault = Fault.from(error);
  return (
    fault instanceof CancellationError || fault.code === "lease_lost" || fault.code.startsWith("journal_")
  );
}

/** Converts what a scorer returned. Throws `invalid_argument` if it is no score. */
export function readScore(name: string, given: ScorerOutput): Score {
  const isObject = typeof given === "object" && given !== null;
  const value: unknown = isObject ? readProperty(given, "score") : given;
  if (isObject && value === undefined && readProperty(given, "error") !== undefined)
    throw Fault.from(readProperty(given, "error"));
  const reason: unknown = isObject ? readProperty(given, "reason") : undefined;
  const metadata: unknown = isObject ? readProperty(given, "metadata") : undefined;
  return {
    score: scoreOf(name, value, isObject),
    reason: typeof reason === "string" ? reason : null,
    metadata: metadata === undefined ? null : nearestJson(metadata),
    error: null,
  };
}

function scoreOf(name: string, value: unknown, isObject: boolean): number | null {
  if (typeof value === "boolean") return value ? 1 : 0;
  if (value === null && isObject) return null;
  if (typeof value === "number" && value >= 0 && value <= 1) return value;
  throw new Fault(
    "invalid_argument",
    `invalid score ${describeValue(value)} of scorer ${name}: expected a number from 0 to 1, a boolean, or { score } with one of them or null`,
  );
}
