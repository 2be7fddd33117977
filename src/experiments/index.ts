export { baselinePath, readBaseline, writeBaseline, writeWhole } from "./baseline.ts";
export { jsonLines } from "./case-file.ts";
export type { CaseSource, GivenCase } from "./cases.ts";
export type {
  DurableScorer,
  ExperimentCase,
  ExperimentResult,
  ForeignScorer,
  ModelMode,
  Score,
  ScoredRun,
  ScoredToolCall,
  ScoreGate,
  Scorer,
  ScorerFunction,
  ScorerInput,
  ScorerOutput,
  ToolMode,
  TrialResult,
} from "./contract.ts";
export {
  Experiment,
  experiment,
  type ExperimentInput,
  type ExperimentOptions,
  type ExperimentOutput,
  type RunExperimentOptions,
} from "./experiment.ts";
export { scoreRuns, type ScoredRuns, type ScoreRunsOptions, type ScoringOutput } from "./score-runs.ts";
export { addCases, type AddedCase } from "./recording/add-cases.ts";
export { requireBaseline, type GateOutcome } from "./gates.ts";
export { refuseRequests } from "./outside-calls.ts";
export {
  endOf,
  reportOf,
  type Baseline,
  type CaseChange,
  type ExperimentEnd,
  type ExperimentReport,
  type FailedCase,
  type Problem,
  type ScorerRow,
  type VariantRow,
  type Verdict,
} from "./report.ts";
export { junitReport } from "./reports/junit-report.ts";
export { markdownReport } from "./reports/markdown-report.ts";
export { textReport } from "./reports/text-report.ts";
export { jsonMatch, type JsonMatchOptions } from "./scorers/json-match.ts";
export { judge, type JudgeOptions } from "./scorers/judge.ts";
export { completed, costBelow, timeBelow, turnsBelow } from "./scorers/limit-scorers.ts";
export type { NamedOptions } from "./scorers/named-scorer.ts";
export { pairwise, type PairwiseOptions } from "./scorers/pairwise.ts";
export { survivesKills, type SurvivesKillsOptions } from "./scorers/survives-kills.ts";
export {
  contains,
  exactMatch,
  matches,
  type ContainsOptions,
  type ExactMatchOptions,
} from "./scorers/text-scorers.ts";
export { toolCalls, type ExpectedToolCall, type ToolCallsOptions } from "./scorers/tool-calls.ts";
export { estimateMean, meanOf, type Estimate, type EstimateOptions } from "./statistics.ts";
export { followExperiment, headName, readExperiment, readTrials, type ExperimentRun } from "./trial-log.ts";
export {
  isForkOf,
  runs,
  type ForkStart,
  type ForkVariant,
  type StoredRuns,
  type StoredRunsOptions,
} from "./forks.ts";
