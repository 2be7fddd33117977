import type {
  Event,
  JsonValue,
  MaybePromise,
  RunId,
  RunStatus,
  RunSummaryStatus,
  TaskId,
  UserPart,
  WorkflowContext,
  HostedAgent,
} from "../kernel/index.ts";

/** Whether a case answers tool calls from its recording: always, if the call was recorded, or never. */
export type ToolMode = "recorded" | "recorded-or-live" | "live";
/** Whether a case answers model calls from its recording. */
export type ModelMode = "recorded" | "live";

/** One case of an experiment: what an agent is given, and what is expected of it. */
export interface ExperimentCase {
  /** Id of the case, unique in the experiment. Reports name the case by it. */
  readonly id: string;
  /** Input of the agent. */
  readonly input: string | readonly UserPart[];
  /** What scorers compare the output with. `null` if nothing was given. */
  readonly expected: JsonValue;
  /** Words that `--tag` selects by. */
  readonly tags: readonly string[];
  /** Path of the file that holds the recorded replies and tool results of a stored run. `null` for a case without one. */
  readonly recording: string | null;
  /** Whether tool calls are answered from the recording. If absent, the option of the experiment says so. */
  readonly tools?: ToolMode;
  /** Whether model calls are answered from the recording. If absent, the option of the experiment says so. */
  readonly model?: ModelMode;
}

/** A tool call of a case, in the order in which the agent made the calls. */
export interface ScoredToolCall {
  readonly name: string;
  readonly arguments: JsonValue;
  readonly result: JsonValue;
  readonly isError: boolean;
}

/** What an agent did for one case. Scorers receive it as `run`. */
export interface ScoredRun {
  readonly runId: RunId;
  readonly taskId: TaskId;
  readonly status: RunStatus;
  /** Cost of the task with its children, in dollars. `null` if that of a call is not known. */
  readonly costUsd: number | null;
  readonly tokens: number;
  /** Number of model calls of the task with its children. */
  readonly turns: number;
  /** Time from the start to the end of the task. */
  readonly durationMs: number;
  readonly toolCalls: readonly ScoredToolCall[];
  /** Reads the events of the task and its children. */
  events(): AsyncIterable<Event>;
}

/** What a scorer receives. The scorers of the package autoevals take the first three. */
export interface ScorerInput {
  readonly input: string | readonly UserPart[];
  readonly output: JsonValue;
  readonly expected: JsonValue;
  readonly run: ScoredRun;
  readonly caseId: string;
  /** Name of the variant of the agent that answered. */
  readonly variant: string;
  /**
   * What the variants before this one have answered in the same trial, by their names. `null` is the answer of an agent that
   * failed. Only a durable scorer with `comparesVariants` receives it.
   */
  readonly rivals?: { readonly [variant: string]: JsonValue };
}

/** What a scorer returns: a number from 0 to 1, a boolean, or either with a reason. A score of `null` skips the case. */
export type ScorerOutput =
  | number
  | boolean
  | {
      readonly name?: string;
      readonly score: number | boolean | null;
      readonly reason?: string;
      readonly metadata?: unknown;
    };

/** A scorer as a function. Its name is the name in reports and gates. */
export type ScorerFunction = (given: ScorerInput) => MaybePromise<ScorerOutput>;

/**
 * A scorer that does durable work of its own, such as the call of a judge. A branch of the experiment executes `score` again
 * after a crash with its recorded steps.
 */
export interface DurableScorer {
  readonly name: string;
  /** Agents that `score` calls. They are registered with the experiment. */
  readonly agents?: readonly HostedAgent[];
  /** Whether `score` reads `rivals`. It is then called when the variants before have answered. Default: false. */
  readonly comparesVariants?: boolean;
  score(given: ScorerInput, ctx: WorkflowContext): Promise<ScorerOutput>;
}

/**
 * A scorer of another package, such as autoevals, whose parameter has a type of its own. It is called like a `ScorerFunction`, and its
 * result is checked when it returns. The interface has no call signature, so that the parameter of a function in a list of
 * scorers still has the type `ScorerInput`.
 */
export interface ForeignScorer {
  readonly name: string;
  readonly bind: CallableFunction["bind"];
}

/** A scorer of an experiment, in one of its three forms. */
export type Scorer = ScorerFunction | DurableScorer | ForeignScorer;

/** The score of one scorer for one trial of a case. */
export interface Score {
  /** From 0 to 1. `null` if the scorer skipped the case or failed. */
  readonly score: number | null;
  readonly reason: string | null;
  readonly metadata: JsonValue;
  /** Message of the error that the scorer threw. `null` if it did not fail. */
  readonly error: string | null;
}

/** One trial of one case with one variant. */
export interface TrialResult {
  readonly caseId: string;
  readonly variant: string;
  /** Number of the trial, from 1. */
  readonly trial: number;
  readonly taskId: TaskId | null;
  /** The run of its own that answered: a fork of a stored run. Absent if a task of the experiment answered. */
  readonly runId?: RunId;
  readonly status: RunStatus;
  readonly output: JsonValue;
  /** What the case expects. Absent if it says nothing. */
  readonly expected?: JsonValue;
  /** Message of the error with which the agent ended. `null` if it answered. */
  readonly error: string | null;
  /** Cost of the agent in dollars. `null` if that of a call is not known. */
  readonly costUsd: number | null;
  readonly tokens: number;
  readonly turns: number;
  readonly durationMs: number;
  readonly tags: readonly string[];
  /** Scores by name of the scorer. */
  readonly scores: { readonly [scorer: string]: Score };
}

/** What must hold for an experiment to pass. */
export interface ScoreGate {
  /** Lowest mean over the cases. */
  readonly mean?: number;
  /** Largest drop of the mean against the baseline. Needs a baseline. */
  readonly maxDrop?: number;
}

/** The results of an experiment, as a baseline file and the reports hold them. */
export interface ExperimentResult {
  readonly name: string;
  readonly runId: RunId;
  /** Status of the run. A run that has not ended is pending, running or waiting. */
  readonly status: RunSummaryStatus;
  readonly variants: readonly string[];
  readonly scorers: readonly string[];
  readonly trials: number;
  /** Number of trials that the experiment consists of. Fewer results mean that the run has stopped before its end. */
  readonly expectedTrials: number;
  readonly results: readonly TrialResult[];
  readonly gates: { readonly [scorer: string]: ScoreGate };
  /** Cost of the whole run in dollars, with its judges. `null` if that of a call is not known. */
  readonly costUsd: number | null;
}
