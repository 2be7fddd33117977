import { Fault } from "../kernel/index.ts";
import type { ExperimentResult, ScoreGate } from "./contract.ts";

/** Gates by name of the scorer. */
export type ScoreGates = ExperimentResult["gates"];

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
        `${scorer}: the mean is ${besides(lowest, mean)}, and must be at least ${lowest}`,
      );
  if (maxDrop !== undefined)
    if (difference === null) add(false, `${scorer}: no case can be compared with the baseline`);
    else
      add(
        difference >= -maxDrop - tolerance,
        difference < 0
          ? `${scorer}: the mean has dropped by ${besides(maxDrop, -difference)}, and may drop by ${maxDrop}`
          : `${scorer}: the mean has not dropped, and may drop by ${maxDrop}`,
      );
  return outcomes;
}

/** A score with three decimals. */
export function shownScore(score: number): string {
  return score.toFixed(3);
}

/** A score with as many decimals as it needs to differ from a limit. */
function besides(limit: number, score: number): string {
  return Number(shownScore(score)) === limit ? score.toFixed(6) : shownScore(score);
}
