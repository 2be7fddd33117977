import {
  CancellationError,
  describeRefusal,
  Fault,
  jsonText,
  MiddlewareTermination,
  outcomeStatus,
  parseTaskId,
  reviveFault,
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
import { setAnswer } from "./answer-text.ts";
import { WorkerInterruption } from "./worker-interruption.ts";

/** What a worker's task came to. H4: a refused seat is one of them. */
export type WorkerResult =
  | {
      readonly kind: "answered";
      readonly output: JsonValue;
      readonly text: string;
      readonly metadata: JsonObject;
    }
  | {
      readonly kind: "stopped";
      readonly status: RunStatus;
      readonly text: string;
      readonly outcome: TaskOutcome;
    }
  | ({ readonly kind: "refused" } & Pick<Extract<SpawnOutcome, { kind: "refused" }>, "reason" | "holders">);

export interface WorkerJob {
  readonly worker: HostedAgent;
  readonly input: WorkerInput;
  readonly options?: SpawnOptions;
  /** B5: what the worker had said when it was stopped together with whoever hired it. Not asked of one that had said nothing. */
  readonly onPartialText?: (text: string) => void;
}

/** Hires a worker and waits for its end. H4: where every seat is taken it waits for one, unless whoever asked for it can do something else. */
export async function runWorker(
  deps: Dependencies,
  { worker, input, options, onPartialText }: WorkerJob,
): Promise<WorkerResult> {
  deps.ctx.check();
  const spawned = await deps.spawnChild(worker, input, { onFull: "wait", ...options });
  if (spawned.kind === "refused") return spawned;
  try {
    return toWorkerResult(await deps.ctx.join(spawned.handle));
  } catch (error) {
    const text = error instanceof CancellationError ? jsonText(error.childOutput ?? "") : "";
    if (text !== "") onPartialText?.(text);
    throw error;
  }
}

/** Several side by side, by name. */
export async function runWorkers(
  deps: Dependencies,
  jobs: Readonly<Record<string, WorkerJob>>,
): Promise<Readonly<Record<string, WorkerResult>>> {
  const names = Object.keys(jobs);
  // A branch's name begins with a letter; a worker's may be a number.
  const branches = Object.entries(jobs).map(([name, job]) => [
    `hire_${name}`,
    (ctx: Dependencies["ctx"]) => runWorker(deps.scopeForWorker(deps.role, ctx), job),
  ]);
  const results = await deps.ctx.parallel(
    Object.fromEntries(branches) as Record<string, (ctx: Dependencies["ctx"]) => Promise<WorkerResult>>,
  );
  return Object.fromEntries(names.map((name) => [name, results[`hire_${name}`] as WorkerResult]));
}

export function toWorkerResult(outcome: TaskOutcome): WorkerResult {
  const { output, metadata = {} } = outcome;
  const text = jsonText(output);
  const status = outcomeStatus(outcome);
  return status === "completed"
    ? { kind: "answered", output, text, metadata }
    : { kind: "stopped", status, text, outcome };
}

/**
 * What a worker said. One that did not come to an answer stops whoever needs it: by a stop of its own, if there is one, or as it was stopped
 * itself, by a bound or a dead end (`boundByWorkers` sees to that), an exhausted budget, a guardrail; anything else is `child_failed`.
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
 * B5: what stopped a worker is that its employer's own budget or time, or one above it, is spent: then the employer stops too, also one that
 * goes on without a worker's answer. Whoever was hired is younger than whoever hired it, so the number of the task whose budget it was tells.
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
 * What a worker came to is what its employer comes to. B5: what it had said is there also when it stops its employer, unless that has
 * something `whole` already. `false`: it said nothing.
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
  requireAnswer(deps, name, result);
  return hasText;
}

/** For a worker whose words are its employer's. */
export function keepPartialText(session: AgentSession): NonNullable<WorkerJob["onPartialText"]> {
  return (text) => {
    setAnswer(session, text);
  };
}

/** In words a model can react to. */
export function describeWorkerFailure(
  name: string,
  result: Exclude<WorkerResult, { kind: "answered" }>,
): string {
  if (result.kind === "refused") return describeRefusal(name, result);
  const { failure, interruption } = result.outcome;
  const cause = failure?.message ?? interruption?.reason;
  const partial = result.text === "" ? "" : `. So far it said: ${result.text}`;
  return `${name} ended as ${result.status}${cause === undefined ? "" : `: ${cause}`}${partial}`;
}
