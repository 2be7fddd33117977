import type { WorkflowScope } from "../assembly/workflow-context.ts";
import {
  describeRefusal,
  FatalError,
  Fault,
  outcomeStatus,
  reviveFault,
  stopsTask,
  type Failure,
  type HostedAgent,
  type JsonValue,
  type RunStatus,
  type TaskOutcome,
} from "../kernel/index.ts";
import type { ExperimentCase, Score, ScoredRun, ScorerInput, TrialResult } from "./contract.ts";
import type { ForkBudget } from "./fork-budget.ts";
import { isStored, trialKey, type ForkedAnswer, type ForkedTrial, type StoredRuns } from "./forks.ts";
import type { ReplayModes } from "./recording/replayed-calls.ts";
import { recordedInput, replays } from "./recording/replays.ts";
import { readRecording, type RunRecording } from "./recording/run-recording.ts";
import { endsExperiment, runScorer } from "./run-scorer.ts";
import { isDurable, type NamedScorer } from "./score.ts";
import { readScoredRun, unstartedRun } from "./scored-run.ts";
import { trialName } from "./trial-log.ts";

/** One trial of a case with a variant. */
export interface Trial {
  readonly asked: ExperimentCase;
  readonly variant: string;
  readonly agent: HostedAgent;
  /** Number of the trial, from 1. */
  readonly number: number;
  /** The answers of the previous variants in the same trial, by variant. */
  readonly rivals: { readonly [variant: string]: Promise<JsonValue> };
  /** Whether scorers are forbidden to send requests that no budget counts. */
  readonly hasBudget: boolean;
  /** Receives the answer, for the variants that follow. */
  readonly onAnswer: (output: JsonValue) => void;
  /**
   * How the agent's calls are answered if the case has a recording. Absent if no case of the experiment has a
   * recording.
   */
  readonly replay?: ReplayModes;
  /**
   * The stored runs, one of which the trial forks, and the budget that the forks share. Absent if the agent answers
   * directly.
   */
  readonly forks?: { readonly from: StoredRuns; readonly budget: ForkBudget };
}

type Scope = WorkflowScope<never>;

/** How the agent of a trial ended. */
interface Answer extends Pick<TrialResult, "taskId" | "runId" | "status" | "output" | "error"> {
  /** Returns the work of the agent. The log is read at the first call, inside a step. */
  readonly run: () => Promise<ScoredRun>;
}

/**
 * Runs one trial in a branch of the experiment and publishes its result. Every part is a step, so a worker that
 * takes over the run does not pay again for recorded parts, such as the agent's answer or a score. Throws
 * `budget_exhausted` if the budget of the experiment ends the trial, which has no result then.
 */
export async function runTrial(scope: Scope, trial: Trial, scorers: readonly NamedScorer[]): Promise<null> {
  const { asked, variant, number, onAnswer } = trial;
  const { run, ...answer } = await (trial.forks === undefined
    ? askAgent(scope, trial)
    : askFork(scope, trial, trial.forks));
  onAnswer(answer.output);
  const measure = async (): Promise<Pick<ScoredRun, "costUsd" | "tokens" | "turns" | "durationMs">> => {
    const { costUsd, tokens, turns, durationMs } = await run();
    return { costUsd, tokens, turns, durationMs };
  };
  const measured = await scope.step("measure", measure, { retry: false });
  const { id: caseId, input, expected, tags } = asked;
  const given = async (): Promise<ScorerInput> => {
    return { input, output: answer.output, expected, run: await run(), caseId, variant };
  };
  const scores: Record<string, Score> = {};
  for (const scorer of scorers) scores[scorer.name] = await score(scope, scorer, given, trial);
  // The result commits with the step that follows. A replay that finds this step publishes nothing.
  const result: TrialResult = {
    caseId,
    variant,
    trial: number,
    ...answer,
    ...(expected !== null && { expected }),
    ...measured,
    tags,
    scores,
  };
  scope.publish(trialName, result);
  await scope.step("publish", () => null, { retry: false });
  return null;
}

/** Runs the agent as a child task. If the task ends without an answer, this is a result, too. */
async function askAgent({ runContext: ctx, runId }: Scope, { asked, agent, replay }: Trial): Promise<Answer> {
  const recording = asked.recording === null ? null : await recordingOf(asked.recording);
  const given = asked.input as JsonValue;
  const input = recording === null ? given : recordedInput(given, recording);
  const spawned = await ctx.spawn(agent.id, input, { onFull: "wait" });
  if (spawned.kind === "refused") {
    const error = describeRefusal(agent.id, spawned);
    return { taskId: null, status: "failed", output: null, error, run: async () => unstartedRun(runId) };
  }
  const { handle } = spawned;
  const { taskId } = handle;
  if (replay !== undefined)
    replays.open({ runId, taskId, recording, modes: replay, events: () => ctx.childEvents(handle) });
  const outcome = await ctx.join(handle);
  replays.close(runId, taskId);
  stopAtOwnBudget(outcome.failure);
  const status = outcomeStatus(outcome);
  // A cancel of the run, or its deadline, ends the experiment. A cancel of this task alone is a result.
  if (status === "cancelled" || status === "deadline_exceeded") ctx.check();
  let read: Promise<ScoredRun> | undefined;
  const run = (): Promise<ScoredRun> =>
    (read ??= readScoredRun({ runId, taskId, status, events: () => ctx.childEvents(handle) }));
  return { taskId, status, output: outcome.output, error: errorOf(status, outcome), run };
}

/** Forks a stored run, or uses the stored run itself. If a run cannot be forked, this is a result, too. */
async function askFork(
  scope: Scope,
  { asked: { id: origin }, variant, number }: Trial,
  { from, budget }: NonNullable<Trial["forks"]>,
): Promise<Answer> {
  const isOwn = !isStored(variant);
  const trial: ForkedTrial = { experimentRun: scope.runId, origin, variant, number };
  try {
    const forkId = await scope.step("fork", () => from.fork(trial, budget), { retry: false });
    budget.begin(trialKey(trial), isOwn);
    const wait = (): Promise<ForkedAnswer> => from.answer(trial, forkId, budget);
    const { runId, ...answer } = await scope.step("answer", wait, { retry: false });
    return { taskId: null, ...(isOwn && { runId }), ...answer, run: () => from.scored(origin, forkId) };
  } catch (error) {
    try {
      scope.check();
    } catch (end) {
      // The fork is a run of its own, which a cancel of the experiment or its deadline does not reach.
      const cancel = (branch: Scope): Promise<null> =>
        branch.step("cancel fork", () => from.cancel(trial, Fault.from(end).message));
      await scope.uncancellable((branch) => cancel(branch as Scope));
      throw end;
    }
    if (stopsTask(error)) throw error;
    const { message } = Fault.from(error);
    const run = async (): Promise<ScoredRun> => unstartedRun(scope.runId);
    return { taskId: null, status: "failed", output: null, error: message, run };
  }
}

/** Reads the recording of a case. A wrong file is not retried. */
async function recordingOf(file: string): Promise<RunRecording> {
  try {
    return await readRecording(file);
  } catch (error) {
    throw new FatalError(Fault.from(error).message, { cause: error });
  }
}

function errorOf(status: RunStatus, { failure, interruption }: TaskOutcome): string | null {
  if (status === "completed") return null;
  return failure?.message ?? interruption?.reason ?? `the agent ended as ${status}`;
}

/**
 * Throws if the budget of the experiment, or a spending cap, has ended the work: the trial is then missing, and
 * runs after a top-up. If the agent's own budget has ended its work, this is a result and does not throw.
 */
function stopAtOwnBudget(failure: Failure | null): void {
  if (failure !== null && endsExperiment(failure)) throw reviveFault(failure);
}

/** Returns the score of one scorer. If the scorer fails, the error is its result, unless the run itself must end. */
async function score(
  scope: Scope,
  named: NamedScorer,
  given: () => Promise<ScorerInput>,
  { rivals, hasBudget, forks, ...trial }: Trial,
): Promise<Score> {
  const { name, scorer } = named;
  if (!isDurable(scorer)) {
    const body = async (): Promise<Score> => runScorer(named, await given(), { hasBudget });
    return await scope.step(`score ${name}`, body, { retry: false });
  }
  const { budget } = forks ?? {};
  if (budget?.isLimited === true) {
    const key = `${trialKey({ origin: trial.asked.id, variant: trial.variant, number: trial.number })} ${name}`;
    await scope.step(`budget ${name}`, () => budget.requireLeft(key).then(() => null), { retry: false });
  }
  if (scorer.comparesVariants !== true) return runScorer(named, await given(), { ctx: scope });
  const answers: Record<string, JsonValue> = {};
  for (const [variant, answer] of Object.entries(rivals)) answers[variant] = await answer;
  return runScorer(named, { ...(await given()), rivals: answers }, { ctx: scope });
}
