import type { ExperimentResult, Score, TrialResult } from "./contract.ts";
import { gateOutcomes, requireBaseline, type GateOutcome } from "./gates.ts";
import { estimateMean, meanOf, reliableFrom, type Estimate } from "./statistics.ts";

/** The scores of one scorer for one variant. */
export interface ScorerRow {
  readonly scorer: string;
  readonly variant: string;
  /** Mean over the cases; trials are averaged per case first. `null` if no case was scored. */
  readonly estimate: Estimate | null;
  /**
   * Difference to the baseline over the common cases, calculated case by case. `null` without a baseline or a
   * common case.
   */
  readonly difference: Estimate | null;
  readonly verdict: Verdict | null;
  /** Number of scores by kind, over all trials. */
  readonly scored: number;
  readonly skipped: number;
  readonly failed: number;
}

/** The meaning of a difference to the baseline. If the interval includes 0, no difference is shown. */
export type Verdict = "better" | "worse" | "no difference shown";

/** A case whose mean differs from its mean in the baseline. */
export interface CaseChange {
  readonly caseId: string;
  readonly variant: string;
  readonly scorer: string;
  readonly before: number;
  readonly after: number;
  readonly didPass: boolean;
  readonly passes: boolean;
  /** Reason of the lowest score. `null` if its scorer gives none. */
  readonly reason: string | null;
}

/** A case whose mean is below the `mean` of its scorer's gate, or below 0.5 without such a gate. */
export interface FailedCase {
  readonly caseId: string;
  readonly variant: string;
  readonly scorer: string;
  readonly mean: number;
  /** Reason of the lowest score. `null` if its scorer gives none. */
  readonly reason: string | null;
}

/** A trial that was not scored, or a scorer that failed. */
export interface Problem {
  readonly caseId: string;
  readonly variant: string;
  readonly trial: number;
  /** `null` if the agent itself failed. */
  readonly scorer: string | null;
  readonly message: string;
}

/** Average cost and duration of a variant over its trials. */
export interface VariantRow {
  readonly variant: string;
  readonly trials: number;
  /** Average cost in dollars. `null` if the cost of a trial is unknown. */
  readonly costUsd: number | null;
  readonly durationMs: number;
  readonly turns: number;
}

/** What the results of an experiment say. */
export interface ExperimentReport {
  readonly result: ExperimentResult;
  /** Name of the baseline. `null` without one. */
  readonly baseline: string | null;
  readonly rows: readonly ScorerRow[];
  readonly variants: readonly VariantRow[];
  /** Cases whose mean rose or fell, beginning with the largest drop. */
  readonly changes: readonly CaseChange[];
  /** Cases that do not pass, the lowest mean first. */
  readonly failed: readonly FailedCase[];
  readonly gates: readonly GateOutcome[];
  readonly problems: readonly Problem[];
  /** Number of trials without a result, because the run has stopped before its end. */
  readonly missing: number;
  /** Whether the number of cases is so small that the intervals are unreliable. */
  readonly isUnreliable: boolean;
}

/** A stored result to compare with. */
export interface Baseline {
  readonly name: string;
  readonly result: ExperimentResult;
}

/**
 * Computes the report for the results of an experiment, alone or in comparison with a baseline. Throws
 * `invalid_argument` if a gate compares with a baseline but there is no baseline.
 */
export function reportOf(result: ExperimentResult, baseline?: Baseline): ExperimentReport {
  requireBaseline(result.gates, baseline !== undefined);
  const rows: ScorerRow[] = [];
  const changes: CaseChange[] = [];
  const failed: FailedCase[] = [];
  const gates: GateOutcome[] = [];
  for (const variant of result.variants)
    for (const scorer of result.scorers) {
      const now = meansByCase(result, variant, scorer);
      const stored =
        baseline && meansByCase(baseline.result, storedVariant(baseline.result, variant), scorer);
      const common = [...now].filter(([id]) => stored?.has(id) === true);
      const differences = common.map(([id, mean]) => mean - (stored?.get(id) as number));
      const row = scorerRow(result, variant, scorer, [...now.values()], differences);
      rows.push(row);
      const gate = Object.hasOwn(result.gates, scorer) ? result.gates[scorer] : undefined;
      const needed = passMark(gate?.mean);
      for (const [caseId, mean] of now)
        if (mean < needed)
          failed.push({
            caseId,
            variant,
            scorer,
            mean,
            reason: lowestReason(result, variant, scorer, caseId),
          });
      for (const [caseId, after] of common) {
        const before = stored?.get(caseId) as number;
        if (Math.abs(after - before) < 1e-9) continue;
        const passes = after >= needed;
        const reason = lowestReason(result, variant, scorer, caseId);
        changes.push({ caseId, variant, scorer, before, after, didPass: before >= needed, passes, reason });
      }
      if (gate === undefined) continue;
      const mean = row.estimate?.mean ?? null;
      const difference = row.difference?.mean ?? null;
      gates.push(...gateOutcomes(gate, { scorer, variant, mean, difference }));
    }
  const cases = new Set(result.results.map(({ caseId }) => caseId)).size;
  return {
    result,
    baseline: baseline?.name ?? null,
    rows,
    variants: result.variants.map((variant) => variantRow(result, variant)),
    changes: changes.toSorted((one, other) => one.after - one.before - (other.after - other.before)),
    failed: failed.toSorted((one, other) => one.mean - other.mean),
    gates,
    problems: result.results.flatMap(problemsOf),
    missing: Math.max(0, result.expectedTrials - result.results.length),
    isUnreliable: cases < reliableFrom,
  };
}

/**
 * The end of an experiment. `incomplete` means that cases failed to run, so that the gates do not include all
 * cases.
 */
export type ExperimentEnd = "passed" | "gate_failed" | "incomplete";

/** Returns how an experiment ended, from its report. */
export function endOf({ result, gates, problems, missing }: ExperimentReport): ExperimentEnd {
  if (missing > 0 || problems.length > 0 || result.status !== "completed") return "incomplete";
  return gates.every(({ isPassed }) => isPassed) ? "passed" : "gate_failed";
}

/** Returns the lowest mean with which a case passes: the `mean` of the scorer's gate, or 0.5 without such a gate. */
export function passMark(gateMean: number | undefined): number {
  return (gateMean ?? 0.5) - 1e-9;
}

/** Returns the name of a variant in a baseline: the same name, or the only variant of the baseline. */
function storedVariant({ variants }: ExperimentResult, variant: string): string {
  const [only = variant] = variants;
  return variants.includes(variant) || variants.length !== 1 ? variant : only;
}

function meansByCase(result: ExperimentResult, variant: string, scorer: string): ReadonlyMap<string, number> {
  const scores = new Map<string, number[]>();
  for (const trial of result.results) {
    const score = trial.variant === variant ? scoreOf(trial, scorer)?.score : undefined;
    if (score === undefined || score === null) continue;
    const list = scores.get(trial.caseId);
    if (list === undefined) scores.set(trial.caseId, [score]);
    else list.push(score);
  }
  return new Map([...scores].map(([id, list]) => [id, meanOf(list)]));
}

function scoreOf({ scores }: TrialResult, scorer: string): Score | undefined {
  return Object.hasOwn(scores, scorer) ? scores[scorer] : undefined;
}

function scorerRow(
  result: ExperimentResult,
  variant: string,
  scorer: string,
  means: readonly number[],
  differences: readonly number[],
): ScorerRow {
  const scores = result.results
    .filter((trial) => trial.variant === variant)
    .flatMap((trial) => scoreOf(trial, scorer) ?? []);
  const failed = scores.filter(({ error }) => error !== null).length;
  const scored = scores.filter(({ score }) => score !== null).length;
  const difference = estimateMean(differences) ?? null;
  return {
    scorer,
    variant,
    estimate: estimateMean(means) ?? null,
    difference,
    verdict: difference === null ? null : verdictOf(difference),
    scored,
    failed,
    skipped: scores.length - scored - failed,
  };
}

function verdictOf({ low, high }: Estimate): Verdict {
  if (low > 0) return "better";
  return high < 0 ? "worse" : "no difference shown";
}

function variantRow({ results }: ExperimentResult, variant: string): VariantRow {
  const trials = results.filter((trial) => trial.variant === variant);
  const mean = (of: (trial: TrialResult) => number): number =>
    trials.length === 0 ? 0 : meanOf(trials.map(of));
  return {
    variant,
    trials: trials.length,
    costUsd: trials.some(({ costUsd }) => costUsd === null) ? null : mean(({ costUsd }) => costUsd ?? 0),
    durationMs: mean(({ durationMs }) => durationMs),
    turns: mean(({ turns }) => turns),
  };
}

function lowestReason(
  result: ExperimentResult,
  variant: string,
  scorer: string,
  caseId: string,
): string | null {
  const scores = result.results
    .filter((trial) => trial.caseId === caseId && trial.variant === variant)
    .flatMap((trial) => scoreOf(trial, scorer) ?? [])
    .filter(({ score }) => score !== null)
    .toSorted((one, other) => (one.score ?? 0) - (other.score ?? 0));
  return scores[0]?.reason ?? null;
}

function problemsOf({ caseId, variant, trial, status, error, scores }: TrialResult): readonly Problem[] {
  if (status === "failed" || status === "cancelled") {
    const message = error ?? `the agent ended as ${status}`;
    return [{ caseId, variant, trial, scorer: null, message }];
  }
  return Object.entries(scores).flatMap(([scorer, each]) =>
    each.error === null ? [] : [{ caseId, variant, trial, scorer, message: each.error }],
  );
}
