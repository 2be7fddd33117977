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
import { takeAnswer } from "./spoken-answer.ts";
import { WorkerBound } from "./worker-bound.ts";

/** What a worker's task came to. H4: a refused seat is one of them. */
export type WorkerEnd =
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

export interface Job {
  readonly worker: HostedAgent;
  readonly input: WorkerInput;
  readonly options?: SpawnOptions;
  /** B5: what the worker had said when it was stopped together with whoever hired it. Not asked of one that had said nothing. */
  readonly heard?: (text: string) => void;
}

/** Hires a worker and waits for its end. H4: where every seat is taken it waits for one, unless whoever asked for it can do something else. */
export async function hire(deps: Dependencies, { worker, input, options, heard }: Job): Promise<WorkerEnd> {
  deps.ctx.check();
  const spawned = await deps.spawnChild(worker, input, { onFull: "wait", ...options });
  if (spawned.kind === "refused") return spawned;
  try {
    return endOf(await deps.ctx.join(spawned.handle));
  } catch (error) {
    const text = error instanceof CancellationError ? jsonText(error.childOutput ?? "") : "";
    if (text !== "") heard?.(text);
    throw error;
  }
}

/** Several side by side, by name. */
export async function hireAll(
  deps: Dependencies,
  jobs: Readonly<Record<string, Job>>,
): Promise<Readonly<Record<string, WorkerEnd>>> {
  const names = Object.keys(jobs);
  // A branch's name begins with a letter; a worker's may be a number.
  const branches = Object.entries(jobs).map(([name, job]) => [
    `hire_${name}`,
    (ctx: Dependencies["ctx"]) => hire(deps.scopeForWorker(deps.role, ctx), job),
  ]);
  const ends = await deps.ctx.parallel(
    Object.fromEntries(branches) as Record<string, (ctx: Dependencies["ctx"]) => Promise<WorkerEnd>>,
  );
  return Object.fromEntries(names.map((name) => [name, ends[`hire_${name}`] as WorkerEnd]));
}

export function endOf(outcome: TaskOutcome): WorkerEnd {
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
export function answerOf({ ctx }: Pick<Dependencies, "ctx">, name: string, end: WorkerEnd): string {
  if (end.kind === "answered") return end.text;
  ctx.check();
  if (end.kind === "refused")
    throw new Fault("child_failed", whyNot(name, end), { details: { reason: end.reason } });
  const { failure, interruption } = end.outcome;
  if (interruption?.status === "guardrail_tripped")
    throw new MiddlewareTermination(interruption.reason, { by: name });
  if (interruption !== undefined) throw new WorkerBound(name, interruption);
  if (failure?.code === "budget_exhausted" || failure?.code === "guardrail_tripped")
    throw reviveFault(failure);
  throw new Fault("child_failed", whyNot(name, end), {
    details: {
      worker: name,
      status: end.status,
      ...(failure && { failure: failure as unknown as JsonObject }),
    },
  });
}

/**
 * B5: what stopped a worker is that its employer's own budget or time, or one above it, is spent: then the employer stops too, also one that
 * goes on without a worker's answer. Whoever was hired is younger than whoever hired it, so the number of the task whose budget it was tells.
 */
export function stopIfSpent({ ctx }: Pick<Dependencies, "ctx">, ends: Iterable<WorkerEnd>): void {
  for (const end of ends) {
    if (end.kind === "stopped") ctx.check();
    const failure = end.kind === "stopped" ? end.outcome.failure : null;
    const whose = failure?.code === "budget_exhausted" ? failure.details?.["taskId"] : undefined;
    if (failure && typeof whose === "string" && ordinal(whose) <= ordinal(ctx.taskId))
      throw reviveFault(failure);
  }
}

function ordinal(taskId: string): number {
  return Number(parseTaskId(taskId).slice(1));
}

/**
 * What a worker came to is what its employer comes to. B5: what it had said is there also when it stops its employer, unless that has
 * something `whole` already. `false`: it said nothing.
 */
export function endWith(
  session: AgentSession,
  deps: Dependencies,
  name: string,
  end: WorkerEnd,
  whole = false,
): boolean {
  const isTaken = end.kind === "answered" || (end.kind === "stopped" && !whole);
  const isSaid = isTaken && takeAnswer(session, end.text);
  answerOf(deps, name, end);
  return isSaid;
}

/** For a worker whose words are its employer's. */
export function saidFor(session: AgentSession): NonNullable<Job["heard"]> {
  return (text) => {
    takeAnswer(session, text);
  };
}

/** In words a model can react to. */
export function whyNot(name: string, end: Exclude<WorkerEnd, { kind: "answered" }>): string {
  if (end.kind === "refused") return describeRefusal(name, end);
  const { failure, interruption } = end.outcome;
  const why = failure?.message ?? interruption?.reason;
  const said = end.text === "" ? "" : `. So far it said: ${end.text}`;
  return `${name} ended as ${end.status}${why === undefined ? "" : `: ${why}`}${said}`;
}
