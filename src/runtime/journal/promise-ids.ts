import {
  describeValue,
  Fault,
  parseRunId,
  parseTaskId,
  type Mail,
  type PromiseOutcome,
  type RunId,
  type StepScope,
  type TaskId,
} from "../../kernel/index.ts";
import { promiseWait } from "./wait-names.ts";

/** The place of a promise: the run and the task that wait for it, and its key in the journal of the task. */
export interface PromisePlace {
  readonly runId: RunId;
  readonly taskId: TaskId;
  readonly key: string;
}

const prefix = "prm_";

/** The key of the promise with this number in a scope, from 0. It is the same on every replay, and is not the address of a step. */
export function promiseKey(scope: StepScope, number: number): string {
  return scope === "" ? `promise.${number}` : `${scope}/promise.${number}`;
}

/** The id by which other runs and processes settle the promise. It contains only characters that a URL may contain. */
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

/** P1: the mail that settles a promise. All such mails of a promise have one id, so the first counts. */
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
  return { ...sender, id: `promise ${taskId} ${key}`, runId, body };
}
