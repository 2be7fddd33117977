export { jsonLines, type CaseSource, type GivenCase } from "./cases.ts";
export type {
  DurableScorer,
  ExperimentCase,
  ExperimentResult,
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
export { readExperiment, readTrials, type ExperimentRun } from "./trial-log.ts";
export { addCases, type AddedCase } from "./recording/add-cases.ts";
