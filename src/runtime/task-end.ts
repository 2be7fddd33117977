import {
  Fault,
  type CancellationError,
  type JsonValue,
  type Mail,
  type RunId,
  type TaskOutcome,
} from "../kernel/index.ts";
import type { Addition } from "./run-log.ts";
import type { TaskState } from "./run-state.ts";

/** A stop is no crash, and a fault that says it never passes will not pass when the code is started again: neither is tried again. */
export function isFinalFault(fault: Fault): boolean {
  return fault.code !== "internal" && fault.retry === "never";
}

/** In a fault's details: what there was of an answer when it was cut. Recorded with the fault, so a replay ends with it as well. */
export const partialOutput = "partial";

/** B5: what a task that failed has to show. */
export function outputAt(fault: Fault, reported: JsonValue = null): JsonValue {
  const partial = fault.details?.[partialOutput];
  return typeof partial === "string" && partial !== "" ? partial : reported;
}

export function cancelledOutcome(error: CancellationError, output: JsonValue = null): TaskOutcome {
  return { status: "cancelled", output, failure: error.toJSON() };
}

/**
 * What becomes of the messages a task was given. A message that asks nothing is acknowledged, or handed back when the task did not end
 * well; whoever asked and got no answer is told why.
 */
export function answersOf(task: TaskState, outcome: TaskOutcome, runId: RunId, at: number): Addition {
  const { record, drained, replied } = task;
  const { agentId } = record;
  const given = [...record.messages, ...drained.values()];
  if (given.length === 0) return {};
  const bad = outcome.status === "failed" || outcome.status === "cancelled";
  const back = given.filter(({ replyTo }) => bad && replyTo === undefined).map(({ id }) => id);
  const done = given.map(({ id }) => id).filter((id) => !back.includes(id));
  const value = whyUnanswered(agentId, outcome);
  const mail = given.flatMap(({ id, replyTo }): Mail[] => {
    if (replyTo === undefined || replied.has(id)) return [];
    const { taskId, wait } = replyTo;
    const body = { type: "resolve", taskId, wait, value } as const;
    return [{ id: `end ${runId} ${id}`, runId: replyTo.runId, from: agentId, at, body }];
  });
  return {
    inbox: [
      ...(done.length === 0 ? [] : [{ type: "ack", agentId, messageIds: done } as const]),
      ...(back.length === 0 ? [] : [{ type: "nack", agentId, messageIds: back } as const]),
    ],
    ...(mail.length === 0 ? {} : { mail }),
  };
}

function whyUnanswered(agentId: string, { status, failure, output }: TaskOutcome): JsonValue {
  if (status === "paused") return { kind: "target_paused", partial: output };
  const kind = status === "cancelled" ? "target_cancelled" : "target_failed";
  const silent = new Fault("child_failed", `${agentId} ended without an answer`).toJSON();
  return { kind, failure: (failure ?? silent) as unknown as JsonValue };
}
