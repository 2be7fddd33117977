import {
  Fault,
  formatTaskId,
  fromNanoUsd,
  type CancellationError,
  type ErrorKind,
  type EventDraft,
  type JsonValue,
  type Mail,
  type RunId,
  type RunStatus,
  type TaskOutcome,
} from "../kernel/index.ts";
import type { Addition } from "./run-log.ts";
import type { RunState, TaskState } from "./run-state.ts";

/** A stop is no crash, and a fault that says it never passes will not pass when the code is started again: neither is tried again. */
export function isFinalFault(fault: Fault): boolean {
  return fault.code !== "internal" && fault.retry === "never";
}

export function cancelledOutcome(error: CancellationError, output: JsonValue = null): TaskOutcome {
  return { status: "cancelled", output, failure: error.toJSON() };
}

export function statusOf(outcome: TaskOutcome | null): RunStatus {
  if (outcome === null || outcome.status === "paused") return "paused";
  if (outcome.status === "completed") return outcome.interruption?.status ?? "completed";
  const { failure } = outcome;
  if (failure?.code === "budget_exhausted") return "budget_exhausted";
  if (failure?.code === "guardrail_tripped") return "guardrail_tripped";
  if (failure?.code === "cancelled")
    return failure.details?.["status"] === "deadline_exceeded" ? "deadline_exceeded" : "cancelled";
  return "failed";
}

/** What is told of a task that ends. An error is told of one that failed, never of one that was stopped (trap O8). */
export function endEvents(outcome: TaskOutcome): readonly EventDraft[] {
  const { status, output, failure, interruption } = outcome;
  const data = { status, output, ...(failure && { failure }), ...(interruption && { interruption }) };
  const end: EventDraft = { type: "task_end", data };
  if (failure === null || statusOf(outcome) !== "failed") return [end];
  const kind = /^model_(.+)$/.exec(failure.code)?.[1] as ErrorKind | undefined;
  return [{ type: "agent_error", data: { failure, ...(kind && { kind }) } }, end];
}

/** What is told of a run whose tasks have all ended: it came to what its root came to. */
export function runEnd(state: RunState): EventDraft {
  const root = formatTaskId(0);
  const { usage, ledger } = state;
  const { spent, unpriced } = ledger.accounts[root] ?? { spent: { nanoUsd: 0, turns: 0 }, unpriced: 0 };
  const status = statusOf(state.task(root).outcome);
  const costUsd = unpriced > 0 ? null : fromNanoUsd(spent.nanoUsd);
  return { type: "run_end", data: { status, usage, costUsd, turns: spent.turns } };
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
