import {
  CancellationError,
  describeRefusal,
  Fault,
  jsonText,
  MiddlewareTermination,
  outcomeStatus,
  parseTaskId,
  reviveFault,
  type FinishReason,
  type FolderWork,
  type HostedAgent,
  type AgentSession,
  type Dependencies,
  type JsonObject,
  type JsonValue,
  type RunStatus,
  type SpawnOptions,
  type SpawnOutcome,
  type TaskOutcome,
  type WorkerInput,
} from "../../kernel/index.ts";
import { setAnswer } from "../base/answer-text.ts";
import { WorkerInterruption } from "./worker-interruption.ts";

/** The result of spawning a worker: its answer, an end without an answer, or a refused seat (H4). */
export type WorkerResult =
  | {
      readonly kind: "answered";
      readonly output: JsonValue;
      readonly text: string;
      readonly metadata: JsonObject;
      readonly finishReason: FinishReason | undefined;
      /** The work that the worker left in its own folder. */
      readonly work: FolderWork | undefined;
    }
  | {
      readonly kind: "stopped";
      readonly status: RunStatus;
      readonly text: string;
      readonly finishReason: FinishReason | undefined;
      readonly outcome: TaskOutcome;
    }
  | ({ readonly kind: "refused" } & Pick<Extract<SpawnOutcome, { kind: "refused" }>, "reason" | "holders">);

/** A task for a worker agent. */
export interface WorkerJob {
  /** The agent to spawn. */
  readonly worker: HostedAgent;
  readonly input: WorkerInput;
  readonly options?: SpawnOptions;
  /**
   * B5: called with the worker's output so far if the worker is cancelled together with its parent. Not called if the
   * output is empty.
   */
  readonly onPartialText?: (text: string) => void;
}

/**
 * Spawns a worker and waits until it ends. H4: waits for a seat if all are taken, unless `options.onFull` says
 * otherwise.
 */
export async function runWorker(
  deps: Dependencies,
  { worker, input, options, onPartialText }: WorkerJob,
): Promise<WorkerResult> {
  deps.ctx.check();
  const spawned = await deps.spawnWorker(worker, input, { onFull: "wait", ...options });
  if (spawned.kind === "refused") return spawned;
  try {
    return toWorkerResult(await deps.ctx.join(spawned.handle));
  } catch (error) {
    const text = error instanceof CancellationError ? jsonText(error.childOutput ?? "") : "";
    if (text !== "") onPartialText?.(text);
    throw error;
  }
}

/** Runs several workers in parallel and returns their results by name. */
export async function runWorkers(
  deps: Dependencies,
  jobs: Readonly<Record<string, WorkerJob>>,
): Promise<Readonly<Record<string, WorkerResult>>> {
  const names = Object.keys(jobs);
  // The prefix makes a valid branch name: a branch name starts with a letter, and the name of a worker may start with a
  // digit.
  const branches = Object.entries(jobs).map(([name, job]) => [
    `hire_${name}`,
    (ctx: Dependencies["ctx"]) => runWorker(deps.scopeForWorker(deps.role, ctx), job),
  ]);
  const results = await deps.ctx.parallel(
    Object.fromEntries(branches) as Record<string, (ctx: Dependencies["ctx"]) => Promise<WorkerResult>>,
  );
  return Object.fromEntries(names.map((name) => [name, results[`hire_${name}`] as WorkerResult]));
}

/** Converts the outcome of a worker's task. */
export function toWorkerResult(outcome: TaskOutcome): WorkerResult {
  const { output, metadata = {}, finishReason, work } = outcome;
  const text = jsonText(output);
  const status = outcomeStatus(outcome);
  return status === "completed"
    ? { kind: "answered", output, text, metadata, finishReason, work }
    : { kind: "stopped", status, text, finishReason, outcome };
}

/**
 * Returns the text of a worker's answer. If the worker ended without an answer, throws an error that ends its
 * parent in the same way: the parent's own cancellation, a `WorkerInterruption` (see `endOnWorkerInterruption`), an
 * exhausted budget or a tripped guardrail. Any other end is a `child_failed` fault.
 */
export function requireAnswer(
  { ctx }: Pick<Dependencies, "ctx">,
  name: string,
  result: WorkerResult,
): string {
  if (result.kind === "answered") return result.text;
  ctx.check();
  if (result.kind === "refused")
    throw new Fault("child_failed", describeWorkerFailure(name, result), {
      details: { reason: result.reason },
    });
  const { failure, interruption } = result.outcome;
  if (interruption?.status === "guardrail_tripped")
    throw new MiddlewareTermination(interruption.reason, { by: name });
  if (interruption !== undefined) throw new WorkerInterruption(name, interruption);
  if (failure?.code === "budget_exhausted" || failure?.code === "guardrail_tripped")
    throw reviveFault(failure);
  throw new Fault("child_failed", describeWorkerFailure(name, result), {
    details: {
      worker: name,
      status: result.status,
      ...(failure && { failure: failure as unknown as JsonObject }),
    },
  });
}

/**
 * B5: throws if a worker was stopped because the budget or the deadline of its parent, or of a task above the
 * parent, is exhausted. The parent must then stop too, even if it could continue without the worker's answer.
 * Whether it is a task above is decided by its number, because a parent has a lower number than its children.
 */
export function stopIfBudgetSpent({ ctx }: Pick<Dependencies, "ctx">, results: Iterable<WorkerResult>): void {
  for (const result of results) {
    if (result.kind === "stopped") ctx.check();
    const failure = result.kind === "stopped" ? result.outcome.failure : null;
    const taskId = failure?.code === "budget_exhausted" ? failure.details?.["taskId"] : undefined;
    if (failure && typeof taskId === "string" && taskNumber(taskId) <= taskNumber(ctx.taskId))
      throw reviveFault(failure);
  }
}

function taskNumber(taskId: string): number {
  return Number(parseTaskId(taskId).slice(1));
}

/**
 * Makes the result of a worker the result of its parent. It sets the output, and throws as `requireAnswer` does if
 * there is no answer. B5: the output of a stopped worker is kept too, unless the parent already has an answer
 * (`hasAnswer`). Returns `false` if the worker's text is blank.
 */
export function adoptWorkerResult(
  session: AgentSession,
  deps: Dependencies,
  name: string,
  result: WorkerResult,
  hasAnswer = false,
): boolean {
  const isAdopted = result.kind === "answered" || (result.kind === "stopped" && !hasAnswer);
  const hasText = isAdopted && setAnswer(session, result.text);
  if (hasText) session.replies.add(result.text, result.finishReason ?? "stop");
  requireAnswer(deps, name, result);
  return hasText;
}

/** Returns an `onPartialText` callback that keeps a cancelled worker's output as the output of its parent. */
export function keepPartialText(session: AgentSession): NonNullable<WorkerJob["onPartialText"]> {
  return (text) => {
    setAnswer(session, text);
  };
}

/** Describes why a worker gave no answer, for a model or a fault message. */
export function describeWorkerFailure(
  name: string,
  result: Exclude<WorkerResult, { kind: "answered" }>,
): string {
  if (result.kind === "refused") return describeRefusal(name, result);
  const { failure, interruption } = result.outcome;
  const cause = failure?.message ?? interruption?.reason;
  const partial = result.text === "" ? "" : `. Its output so far: ${result.text}`;
  return `${name} ended with status ${result.status}${cause === undefined ? "" : `: ${cause}`}${partial}`;
}
