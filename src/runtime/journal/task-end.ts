import {
  Fault,
  fromNanoUsd,
  HistoryRetention,
  outcomeStatus,
  rootTaskId as root,
  type CancellationError,
  type Erasure,
  type ErrorKind,
  type EventData,
  type EventDraft,
  type JsonValue,
  type Mail,
  type RunId,
  type SessionChange,
  type TaskOutcome,
  type TaskReport,
} from "../../kernel/index.ts";
import type { Addition } from "./run-log.ts";
import type { RunState, TaskState } from "./run-state.ts";

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

type TaskEnd = EventData["task_end"];

/** What is told of a task that ends. An error is told of one that failed, never of one that was stopped (trap O8). */
export function endEvents(
  { usage, resumed }: Pick<TaskState, "usage" | "resumed">,
  outcome: TaskOutcome,
): readonly EventDraft[] {
  const { status, output, failure, interruption, metadata } = outcome;
  const data: { -readonly [Key in keyof TaskEnd]: TaskEnd[Key] } = { status, output, usage };
  if (failure !== null) data.failure = failure;
  if (interruption !== undefined) data.interruption = interruption;
  if (metadata !== undefined) data.metadata = metadata;
  if (resumed > 0) data.again = true;
  const end: EventDraft = { type: "task_end", data };
  if (failure === null || outcomeStatus(outcome) !== "failed") return [end];
  const kind = /^model_(.+)$/.exec(failure.code)?.[1] as ErrorKind | undefined;
  return [{ type: "agent_error", data: { failure, ...(kind && { kind }) } }, end];
}

/** What is told of a run whose tasks have all ended: it came to what its root came to. B3: what was lost, apart. */
export function runEnd(state: RunState): EventDraft {
  const { usage, ledger } = state;
  const account = ledger.accounts[root];
  const isKnown = (account?.unpriced ?? 0) === 0;
  const usd = (nanoUsd = 0): number | null => (isKnown ? fromNanoUsd(nanoUsd) : null);
  const data = {
    status: outcomeStatus(state.task(root).outcome),
    usage,
    costUsd: usd(account?.spent.nanoUsd),
    turns: account?.spent.turns ?? 0,
    lost: { tokens: account?.lost.tokens ?? 0, costUsd: usd(account?.lost.nanoUsd) },
  };
  return { type: "run_end", data };
}

/**
 * What becomes of the messages a task was messages. A message that asks nothing is acknowledged, or handed back when the task did not end
 * well; whoever asked and got no answer is told why. `undefined`: it answers for none.
 */
export function answersOf(
  task: TaskState,
  outcome: TaskOutcome,
  runId: RunId,
  at: number,
): Addition | undefined {
  const { messages, replied } = task;
  const { agentId } = task.record;
  if (messages.length === 0) return undefined;
  const bad = outcome.status === "failed" || outcome.status === "cancelled";
  const back = messages.filter(({ replyTo }) => bad && replyTo === undefined).map(({ id }) => id);
  const done = messages.map(({ id }) => id).filter((id) => !back.includes(id));
  const value = whyUnanswered(agentId, outcome);
  const mail = messages.flatMap(({ id, replyTo }): Mail[] => {
    if (replyTo === undefined || replied.includes(id)) return [];
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

/**
 * S1: what a task's end leaves in its session. Nothing if it failed: then it stays as it is, hidden and resumable. What the user said
 * becomes visible with the root's end, whether or not its code came to report anything.
 */
export function sessionChangesAtEnd(
  { record }: TaskState,
  outcome: TaskOutcome,
  { sessions = [] }: TaskReport,
  state: RunState,
): readonly SessionChange[] {
  const { retention, sessionId, runId } = record.supervision;
  const isHidden = outcome.status === "failed" && outcomeStatus(outcome) === "failed";
  if (isHidden || retention === HistoryRetention.NONE) return [];
  if (record.taskId !== root) return sessions;
  // It would go with the run's end, and may be resumed without it.
  if (retention === HistoryRetention.RUN) return [];
  if (state.sessionsOf(root).length === 0) return sessions;
  return [{ type: "reveal", sessionId, runId, taskId: root }, ...sessions];
}

/** R14: what goes when the run ends, however it ended; in the commit that says so. `undefined`: nothing does. */
export function historyToErase(state: RunState): Addition | undefined {
  const sessions: SessionChange[] = [];
  const erases: Erasure[] = [];
  for (const { record } of state.tasks.values()) {
    const { taskId, agentId, supervision } = record;
    const { retention, runId } = supervision;
    if (retention === HistoryRetention.PERMANENT) continue;
    for (const sessionId of state.sessionsOf(taskId))
      sessions.push({ type: "remove", sessionId, runId, taskId });
    if (retention === HistoryRetention.NONE) erases.push({ taskId, agentId });
  }
  if (sessions.length + erases.length === 0) return undefined;
  return { ...(sessions.length > 0 && { sessions }), ...(erases.length > 0 && { erases }) };
}
