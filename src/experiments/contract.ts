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

/**
 * Whether a case answers tool calls from its recording: always (`recorded`), only recorded calls
 * (`recorded-or-live`), or never (`live`).
 */
export type ToolMode = "recorded" | "recorded-or-live" | "live";
/** Whether a case answers model calls from its recording. */
export type ModelMode = "recorded" | "live";

/** One case of an experiment: the input of an agent, and its expected output. */
export interface ExperimentCase {
  /** Id of the case, unique in the experiment. Reports use it as the name of the case. */
  readonly id: string;
  /** Input of the agent. */
  readonly input: string | readonly UserPart[];
  /** The expected value, with which scorers compare the output. `null` if none was given. */
  readonly expected: JsonValue;
  /** Words that `--tag` selects by. */
  readonly tags: readonly string[];
  /**
   * Path of the file with the recorded replies and tool results of a stored run. `null` for a case without a
   * recording.
   */
  readonly recording: string | null;
  /** Whether tool calls are answered from the recording. If absent, the option of the experiment decides. */
  readonly tools?: ToolMode;
  /** Whether model calls are answered from the recording. If absent, the option of the experiment decides. */
  readonly model?: ModelMode;
}

/** A tool call of a case, in the order in which the agent made the calls. */
export interface ScoredToolCall {
  readonly name: string;
  readonly arguments: JsonValue;
  readonly result: JsonValue;
  readonly isError: boolean;
}

/** The work of an agent for one case. Scorers receive it as `run`. */
export interface ScoredRun {
  readonly runId: RunId;
  readonly taskId: TaskId;
  readonly status: RunStatus;
  /** Cost of the task and its children in dollars. `null` if the price of a call is unknown. */
  readonly costUsd: number | null;
  readonly tokens: number;
  /** Number of model calls of the task and its children. */
  readonly turns: number;
  /** Time from the start to the end of the task. */
  readonly durationMs: number;
  readonly toolCalls: readonly ScoredToolCall[];
  /** Reads the events of the task and its children. */
  events(): AsyncIterable<Event>;
}

/** The input of a scorer. The scorers of the package autoevals use the first three fields. */
export interface ScorerInput {
  readonly input: string | readonly UserPart[];
  readonly output: JsonValue;
  readonly expected: JsonValue;
  readonly run: ScoredRun;
  readonly caseId: string;
  /** Name of the variant of the agent that answered. */
  readonly variant: string;
  /**
   * The answers of the previous variants in the same trial, by variant. `null` is the answer of an agent that
   * failed. Only a durable scorer with `comparesVariants` receives this field.
   */
  readonly rivals?: { readonly [variant: string]: JsonValue };
}

/**
 * The result of a scorer: a number from 0 to 1, a boolean, or one of them with a reason. A score of `null` skips
 * the case.
 */
export type ScorerOutput =
  | number
  | boolean
  | {
      readonly name?: string;
      readonly score: number | boolean | null;
      readonly reason?: string;
      readonly metadata?: unknown;
    };

/** A scorer as a function. The name of the function is used in reports and gates. */
export type ScorerFunction = (given: ScorerInput) => MaybePromise<ScorerOutput>;

/**
 * A scorer that does durable work itself, such as the call of a judge. After a crash, a branch of the experiment
 * executes `score` again with its recorded steps.
 */
export interface DurableScorer {
  readonly name: string;
  /** Agents that `score` calls. They are registered with the experiment. */
  readonly agents?: readonly HostedAgent[];
  /**
   * Whether `score` reads `rivals`. It is then called only after the previous variants have answered. Default:
   * `false`.
   */
  readonly comparesVariants?: boolean;
  score(given: ScorerInput, ctx: WorkflowContext): Promise<ScorerOutput>;
}

/**
 * A scorer of another package, such as autoevals, whose parameter has a different type. It is called like a
 * `ScorerFunction`, and its result is checked. The interface has no call signature, so that TypeScript still infers
 * the type `ScorerInput` for the parameter of a function in a list of scorers.
 */
export interface ForeignScorer {
  readonly name: string;
  readonly bind: CallableFunction["bind"];
}

/** A scorer of an experiment, in one of its three forms. */
export type Scorer = ScorerFunction | DurableScorer | ForeignScorer;

/** The score of one scorer for one trial of a case. */
export interface Score {
  /** The score from 0 to 1. `null` if the scorer skipped the case or failed. */
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
  /**
   * Id of the separate run that answered, which is a fork of a stored run. Absent if a task of the experiment
   * answered.
   */
  readonly runId?: RunId;
  readonly status: RunStatus;
  readonly output: JsonValue;
  /** The expected value of the case. Absent if the case has none. */
  readonly expected?: JsonValue;
  /** Message of the error with which the agent ended. `null` if it answered. */
  readonly error: string | null;
  /** Cost of the agent in dollars. `null` if the price of a call is unknown. */
  readonly costUsd: number | null;
  readonly tokens: number;
  readonly turns: number;
  readonly durationMs: number;
  readonly tags: readonly string[];
  /** Scores by name of the scorer. */
  readonly scores: { readonly [scorer: string]: Score };
}

/** The conditions under which an experiment passes. */
export interface ScoreGate {
  /** Lowest mean over the cases. */
  readonly mean?: number;
  /** Maximum drop of the mean compared with the baseline. Needs a baseline. */
  readonly maxDrop?: number;
}

/** The results of an experiment, in the form of baseline files and reports. */
export interface ExperimentResult {
  readonly name: string;
  readonly runId: RunId;
  /** Status of the run. If it has not ended, the status is pending, running or waiting. */
  readonly status: RunSummaryStatus;
  readonly variants: readonly string[];
  readonly scorers: readonly string[];
  readonly trials: number;
  /** Total number of trials of the experiment. If there are fewer results, the run stopped before its end. */
  readonly expectedTrials: number;
  readonly results: readonly TrialResult[];
  readonly gates: { readonly [scorer: string]: ScoreGate };
  /** Cost of the whole run in dollars, including its judges. `null` if the price of a call is unknown. */
  readonly costUsd: number | null;
}
