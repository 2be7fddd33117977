export { jsonLines, type CaseSource, type GivenCase } from "./cases.ts";
export type {
  DurableScorer,
  ExperimentCase,
  ExperimentResult,
  Score,
  ScoredRun,
  ScoredToolCall,
  ScoreGate,
  Scorer,
  ScorerFunction,
  ScorerInput,
  ScorerOutput,
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
export { readExperiment, readTrials, type ExperimentRun } from "./trial-log.ts";
