import { Fault } from "../kernel/index.ts";
import type { ExperimentResult, ScoreGate } from "./contract.ts";

/** Gates by name of the scorer. */
export type ScoreGates = ExperimentResult["gates"];

/** Throws `invalid_argument` if a gate compares with a baseline but there is no baseline. */
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
  /** Describes the required and the measured value. */
  readonly text: string;
}

/** The measured value with which a gate is compared. `null` if no case was scored. */
export interface GatedScore {
  readonly scorer: string;
  readonly variant: string;
  readonly mean: number | null;
  /** Difference of the mean to the baseline over the common cases. `null` if there is no common case. */
  readonly difference: number | null;
}

/** Tolerance for rounding errors of sums, which must not fail a gate. */
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

/** Formats a score with as many decimals as are necessary to distinguish it from a limit. */
function besides(limit: number, score: number): string {
  return Number(shownScore(score)) === limit ? score.toFixed(6) : shownScore(score);
}
