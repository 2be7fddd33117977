import {
  describeValue,
  Fault,
  parseRunId,
  parseTaskId,
  type EventDraft,
  type Mail,
  type PromiseOutcome,
  type RunId,
  type StepAddress,
  type StepScope,
  type TaskId,
} from "../../kernel/index.ts";
import type { TaskState } from "./task-state.ts";
import { promiseOf, promiseWait } from "./wait-names.ts";

/** The place of a promise: the run and the task that wait for it, and the promise's key in the journal of the task. */
export interface PromisePlace {
  readonly runId: RunId;
  readonly taskId: TaskId;
  readonly key: string;
}

const prefix = "prm_";

/**
 * Returns the key of the promise with this number in a scope, counted from 0. It is the same on every replay, and
 * is not the address of a step.
 */
export function promiseKey(scope: StepScope, number: number): string {
  return scope === "" ? `promise.${number}` : `${scope}/promise.${number}`;
}

/**
 * Returns the id with which other runs and processes settle the promise. It contains only characters that are valid
 * in a URL.
 */
export function formatPromiseId({ runId, taskId, key }: PromisePlace): string {
  return `${prefix}${Buffer.from(JSON.stringify([runId, taskId, key])).toString("base64url")}`;
}

export function parsePromiseId(id: string): PromisePlace {
  try {
    if (!id.startsWith(prefix)) throw new TypeError("the prefix is missing");
    const [runId, taskId, key] = JSON.parse(
      Buffer.from(id.slice(prefix.length), "base64url").toString(),
    ) as string[];
    return { runId: parseRunId(runId ?? ""), taskId: parseTaskId(taskId ?? ""), key: String(key) };
  } catch {
    throw new Fault(
      "invalid_argument",
      `invalid promise id ${describeValue(id)}: expected ${prefix} and letters; use the id that ctx.promise() returned`,
    );
  }
}

/**
 * P1: returns the id of the mail that settles a promise. All such mails of a promise have the same id, so that the
 * first one counts.
 */
function settlingId({ taskId, key }: Pick<PromisePlace, "taskId" | "key">): string {
  return `promise ${taskId} ${key}`;
}

/**
 * J5: returns the events that let durable promises be settled again, when a resumed run repeats the failed waits for them. Such
 * a wait has failed because the promise was rejected, or because the code refused its value.
 */
export function reopenedPromises(
  { record, steps }: Pick<TaskState, "record" | "steps">,
  runId: RunId,
  voids: readonly StepAddress[],
): readonly EventDraft[] {
  const keys = voids.flatMap((address) => {
    const step = steps.get(address);
    const isFailedWait = step?.kind === "wait" && step.outcome.kind === "failed";
    return isFailedWait ? (promiseOf(step.name) ?? []) : [];
  });
  const { taskId } = record;
  return [...new Set(keys)].map((key) => ({
    type: "promise_reopen",
    data: { id: formatPromiseId({ runId, taskId, key }), mailId: settlingId({ taskId, key }) },
  }));
}

/** The mail that settles a promise. */
export function settlingMail(
  place: PromisePlace,
  outcome: PromiseOutcome,
  sender: Pick<Mail, "from" | "at">,
): Mail {
  const { runId, taskId, key } = place;
  const body = {
    type: "resolve",
    taskId,
    wait: promiseWait(key),
    value: outcome as never,
  } as const;
  return { ...sender, id: settlingId(place), runId, body };
}
