import { describeValue, Fault, is, readProperty, type HostedAgent } from "../kernel/index.ts";
import type { DurableScorer, Scorer } from "./contract.ts";

/** A scorer with its name in reports and gates. */
export interface NamedScorer {
  readonly name: string;
  readonly scorer: Scorer;
}

/** Whether the scorer itself does durable work. */
export function isDurable(scorer: Scorer): scorer is DurableScorer {
  return typeof scorer !== "function";
}

/** Agents that the scorers call. */
export function agentsOf(scorers: readonly NamedScorer[]): readonly HostedAgent[] {
  return scorers.flatMap(({ scorer }) => (isDurable(scorer) ? (scorer.agents ?? []) : []));
}

/** Checks the scorers of an experiment. `owner` is the name of the experiment, for errors. */
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
