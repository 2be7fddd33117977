import { describeValue, Fault, is, optionTable, type OptionKinds } from "../kernel/index.ts";
import type { ExperimentResult, ScoreGate } from "./contract.ts";

const gateTable = optionTable({
  mean: is.number({ from: 0, to: 1 }),
  maxDrop: is.number({ from: 0, to: 1 }),
} satisfies OptionKinds<ScoreGate>);

/** Gates by name of the scorer. */
export type ScoreGates = ExperimentResult["gates"];

/** Checks the gates of an experiment. `owner` names the experiment, and `scorers` are the names of its scorers. */
export function readGates(owner: string, gates: ScoreGates, scorers: readonly string[]): ScoreGates {
  for (const [scorer, gate] of Object.entries(gates)) {
    if (!scorers.includes(scorer))
      throw new Fault(
        "invalid_argument",
        `unknown scorer ${describeValue(scorer)} in gates of ${owner}: expected one of ${scorers.join(", ")}`,
      );
    const { mean, maxDrop } = gateTable.read(`gate ${scorer} of ${owner}`, gate);
    if (mean === undefined && maxDrop === undefined)
      throw new Fault(
        "invalid_argument",
        `invalid gate ${scorer} of ${owner}: expected mean or maxDrop, such as { mean: 0.9 }`,
      );
  }
  return gates;
}

/** Throws `invalid_argument` if a gate compares with a baseline and there is none. */
export function requireBaseline(gates: ScoreGates, hasBaseline: boolean): void {
  const comparing = Object.entries(gates).find(([, { maxDrop }]) => maxDrop !== undefined);
  if (hasBaseline || comparing === undefined) return;
  throw new Fault(
    "invalid_argument",
    `gate ${comparing[0]} has maxDrop, which compares with a baseline; add --baseline NAME, or store a first one with --save NAME`,
  );
}

/** Whether a gate holds. */
export interface GateOutcome {
  readonly scorer: string;
  readonly variant: string;
  readonly isPassed: boolean;
  /** What was required, and what was measured. */
  readonly text: string;
}

/** What a gate is compared with. `null` if nothing was scored. */
export interface GatedScore {
  readonly scorer: string;
  readonly variant: string;
  readonly mean: number | null;
  /** Difference of the mean to the baseline over the cases that both have. `null` without a common case. */
  readonly difference: number | null;
}

/** Rounding errors of sums do not fail a gate. */
const tolerance = 1e-9;

/** Evaluates the gate of a scorer for one variant. */
export function gateOutcomes(
  { mean: lowest, maxDrop }: ScoreGate,
  { scorer, variant, mean, difference }: GatedScore,
): readonly GateOutcome[] {
  const outcomes: GateOutcome[] = [];
  const add = (isPassed: boolean, text: string): void => {
    outcomes.push({ scorer, variant, isPassed, text });
  };
  if (lowest !== undefined)
    if (mean === null) add(false, `${scorer}: no case was scored, and the mean must be at least ${lowest}`);
    else
      add(
        mean >= lowest - tolerance,
        `${scorer}: the mean is ${shownScore(mean)}, and must be at least ${lowest}`,
      );
  if (maxDrop !== undefined)
    if (difference === null) add(false, `${scorer}: no case can be compared with the baseline`);
    else
      add(
        difference >= -maxDrop - tolerance,
        difference < 0
          ? `${scorer}: the mean has dropped by ${shownScore(-difference)}, and may drop by ${maxDrop}`
          : `${scorer}: the mean has not dropped, and may drop by ${maxDrop}`,
      );
  return outcomes;
}

/** A score with three decimals. It is rounded towards 0, so that 0.8996 does not look like a passed gate of 0.9. */
export function shownScore(score: number): string {
  return (Math.trunc(score * 1000 + Math.sign(score) * 1e-6) / 1000).toFixed(3);
}
