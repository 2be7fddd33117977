import { is, type OptionKinds } from "../../kernel/index.ts";
import type { ScorerFunction, ScorerOutput } from "../contract.ts";

/** An option that every scorer has. */
export interface NamedOptions {
  /** Name in reports and gates. Two scorers of an experiment need different names. Default: the name of the function. */
  readonly name?: string;
}

export const namedKinds = { name: is.text({ empty: false }) } satisfies OptionKinds<NamedOptions>;

/** Gives a scorer its name. */
export function namedScorer(name: string, score: ScorerFunction): ScorerFunction {
  return Object.defineProperty(score, "name", { value: name, configurable: true });
}

/** Returns the score for a case without an expected value with which the scorer could compare the output. */
export function withoutExpected(scorer: string): ScorerOutput {
  return { score: null, reason: `the case has no expected value, which ${scorer} compares with` };
}
