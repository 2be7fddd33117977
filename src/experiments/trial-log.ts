import { addUsd, rootTaskId, type Failure, type JsonValue, type RunHandle } from "../kernel/index.ts";
import type { ExperimentResult, ScoreGate, TrialResult } from "./contract.ts";

/** The data that an experiment publishes before its first trial. */
export interface ExperimentHead {
  readonly name: string;
  readonly variants: readonly string[];
  readonly scorers: readonly string[];
  readonly trials: number;
  /** Total number of trials of the experiment. */
  readonly expectedTrials: number;
  readonly gates: { readonly [scorer: string]: ScoreGate };
}

/** Name under which the run publishes its head. */
export const headName = "experiment";
/** Name under which the run publishes the result of each trial, in the order in which the trials ended. */
export const trialName = "trial";

/** A run of an experiment, as every process can find it in the store. The code of the experiment is not needed. */
export type ExperimentRun = Pick<RunHandle, "runId" | "events" | "summary">;

/** Yields the results of the trials that have ended so far, in the order of their ends, one at a time. */
export async function* readTrials(run: ExperimentRun): AsyncIterable<TrialResult> {
  for await (const value of published(run)) if (value.kind === "trial") yield value.trial;
}

/**
 * Reads the results of an experiment from the log of its run, which may not have ended. `expectedTrials` is 0 if the run has not begun.
 */
export async function readExperiment(run: ExperimentRun): Promise<ExperimentResult> {
  let head: ExperimentHead | undefined;
  const results: TrialResult[] = [];
  for await (const value of published(run)) {
    if (value.kind === "head") head = value.head;
    else results.push(value.trial);
  }
  const { status, costUsd, agentId } = await run.summary();
  return {
    name: head?.name ?? agentId,
    runId: run.runId,
    status,
    variants: head?.variants ?? [],
    scorers: head?.scorers ?? [],
    trials: head?.trials ?? 0,
    expectedTrials: head?.expectedTrials ?? 0,
    results,
    gates: head?.gates ?? {},
    costUsd: results.reduce<number | null>((sum, { runId, costUsd: own }) => {
      if (runId === undefined) return sum;
      return sum === null || own === null ? null : addUsd(sum, own);
    }, costUsd),
  };
}

/** News about a run of an experiment. */
export type ExperimentNews =
  | Published
  /** An agent has asked a person, and its trial waits for the answer. */
  | { readonly kind: "question"; readonly question: string }
  /** The run has ended; it may have ended before and continued. `failure` is the error of this end, or `null`. */
  | { readonly kind: "end"; readonly failure: Failure | null };

/**
 * Yields the head, each trial, each question to a person, and the end of a run, from its beginning. Ends when the
 * run ends or the signal aborts.
 */
export async function* followExperiment(
  run: Pick<RunHandle, "events">,
  signal: AbortSignal,
): AsyncIterable<ExperimentNews> {
  const types = ["value_published", "approval_request", "task_end"] as const;
  const seen = new Set<string>();
  for await (const event of run.events({ types, signal })) {
    if (event.type === "value_published" && "seq" in event) {
      const value = event.erased === true ? undefined : readPublished(event.data, seen);
      if (value !== undefined) yield value;
    }
    if (event.type === "approval_request") yield { kind: "question", question: event.data.toolName ?? "" };
    if (event.type === "task_end" && event.taskId === rootTaskId)
      yield { kind: "end", failure: event.data.failure ?? null };
  }
}

type Published =
  | { readonly kind: "head"; readonly head: ExperimentHead }
  | { readonly kind: "trial"; readonly trial: TrialResult };

/**
 * Yields the values that the root task has published. If a resumed run has published a trial again, it is yielded
 * only once.
 */
async function* published(run: ExperimentRun): AsyncIterable<Published> {
  const seen = new Set<string>();
  for await (const event of run.events({ types: ["value_published"], follow: false })) {
    if (!("seq" in event) || event.type !== "value_published" || event.erased === true) continue;
    const one = readPublished(event.data, seen);
    if (one !== undefined) yield one;
  }
}

/**
 * Reads a published value. Returns `undefined` for a value with another name, and for a trial that was already
 * read.
 */
function readPublished(
  { name, value }: { readonly name: string; readonly value: JsonValue },
  seen: Set<string>,
): Published | undefined {
  if (name === headName) return { kind: "head", head: value as unknown as ExperimentHead };
  if (name !== trialName) return undefined;
  const trial = value as unknown as TrialResult;
  const key = JSON.stringify([trial.caseId, trial.variant, trial.trial]);
  if (seen.has(key)) return undefined;
  seen.add(key);
  return { kind: "trial", trial };
}
