import {
  Fault,
  HistoryRetention,
  interruptedMessage,
  modelErrorKind,
  outcomeStatus,
  rootTaskId as root,
  stoppedStem,
  type CancellationError,
  type Erasure,
  type EventData,
  type EventDraft,
  type HostedAgent,
  type InterruptedStatus,
  type JsonValue,
  type Mail,
  type NextRun,
  type RunId,
  type SessionChange,
  type StepAddress,
  type TaskChange,
  type TaskId,
  type TaskOutcome,
  type TaskReport,
} from "../../kernel/index.ts";
import { spendOf } from "./run-spend.ts";
import type { Addition } from "./run-log.ts";
import type { RunState } from "./run-state.ts";
import type { TaskState } from "./task-state.ts";

/**
 * Whether a restart of the task's code cannot help, because the fault is permanent. An `internal` fault counts as a
 * crash, which a restart may fix.
 */
export function isFinalFault(fault: Fault): boolean {
  return fault.code !== "internal" && fault.retry === "never";
}

/**
 * Key in a fault's details for the output that had arrived when a model call was interrupted. It is recorded with
 * the fault, so that a replay has the same output.
 */
export const partialOutput = "partial";

/** Key in a fault's details for the stop reason of a reply that became the fault. */
export const faultStopReason = "stopReason";
/** Key in a fault's details for the reported usage of the reply that became the fault. */
export const faultUsage = "usage";

/**
 * B5: returns the partial output of a failed task: the text of the call that was interrupted, or else what the code
 * had reported.
 */
export function outputAt(fault: Fault, reported: JsonValue = null): JsonValue {
  const partial = fault.details?.[partialOutput];
  return typeof partial === "string" && partial !== "" ? partial : reported;
}

export function cancelledOutcome(error: CancellationError, output: JsonValue = null): TaskOutcome {
  return { status: "cancelled", output, failure: error.toJSON() };
}

/**
 * B5: returns an outcome at a deadline, with the limit and the time that was used, including time after the
 * deadline.
 */
export function withTimeUsed(
  outcome: TaskOutcome,
  { record, clock }: Pick<TaskState, "record" | "clock">,
  at: number,
): TaskOutcome {
  const { failure } = outcome;
  const { deadlineMs } = record.budget;
  if (failure === null || deadlineMs === null || outcomeStatus(outcome) !== "deadline_exceeded")
    return outcome;
  const time = { dimension: "deadlineMs", limit: deadlineMs + clock.addedMs, used: clock.usedMs(at) };
  return { ...outcome, failure: { ...failure, details: { ...failure.details, ...time } } };
}

type TaskEnd = EventData["task_end"];

/**
 * Returns the events for the end of a task. Only a failed task gets an `agent_error`; a cancelled or otherwise
 * stopped task does not (trap O8).
 */
export function endEvents(
  { usage, resumed }: Pick<TaskState, "usage" | "resumed">,
  outcome: TaskOutcome,
): readonly EventDraft[] {
  const { output, failure, interruption, finishReason, metadata } = outcome;
  const status = outcomeStatus(outcome);
  const data: { -readonly [Key in keyof TaskEnd]: TaskEnd[Key] } = { status, output, usage };
  if (failure !== null) data.failure = failure;
  if (interruption !== undefined) data.interruption = interruption;
  if (finishReason !== undefined) data.finishReason = finishReason;
  if (metadata !== undefined) data.metadata = metadata;
  if (resumed > 0) data.again = true;
  const end: EventDraft = { type: "task_end", data };
  if (failure === null || status !== "failed") return [end];
  const kind = modelErrorKind(failure.code);
  return [{ type: "agent_error", data: { failure, ...(kind && { kind }) } }, end];
}

/**
 * Returns the `run_end` event. The run has the status of its root task. B3: `lost` contains the charges of calls
 * without reported usage.
 */
export function runEnd(state: RunState): EventDraft {
  const { usage, costUsd, turns, unreported: lost } = spendOf(state);
  const status = outcomeStatus(state.task(root).outcome);
  return { type: "run_end", data: { status, usage, costUsd, turns, lost } };
}

/**
 * Returns the changes for the messages of an ended task, which acknowledge them. If the task failed or was
 * cancelled, messages that expect no reply go back to the inbox. If a message expects a reply and got none, its
 * sender receives the reason. Returns `undefined` if the task has no messages.
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
  const isBad = outcome.status === "failed" || outcome.status === "cancelled";
  const returned = messages.filter(({ replyTo }) => isBad && replyTo === undefined).map(({ id }) => id);
  const acknowledged = messages.map(({ id }) => id).filter((id) => !returned.includes(id));
  const value = whyUnanswered(agentId, outcome);
  const mail = messages.flatMap(({ id, replyTo }): Mail[] => {
    if (replyTo === undefined || replied.includes(id)) return [];
    const { taskId, wait } = replyTo;
    const body = { type: "resolve", taskId, wait, value } as const;
    return [{ id: `end ${runId} ${id}`, runId: replyTo.runId, from: agentId, at, body }];
  });
  return {
    inbox: [
      ...(acknowledged.length === 0 ? [] : [{ type: "ack", agentId, messageIds: acknowledged } as const]),
      ...(returned.length === 0 ? [] : [{ type: "nack", agentId, messageIds: returned } as const]),
    ],
    ...(mail.length === 0 ? {} : { mail }),
  };
}

function whyUnanswered(agentId: string, { status, failure, output }: TaskOutcome): JsonValue {
  if (status === "paused") return { kind: "target_paused", partial: output };
  const kind = status === "cancelled" ? "target_cancelled" : "target_failed";
  const noAnswer = new Fault("child_failed", `agent ${agentId} ended without an answer`).toJSON();
  return { kind, failure: (failure ?? noAnswer) as unknown as JsonValue };
}

/**
 * S1: returns how the end of a task changes its session. A failed task changes nothing: its entries stay hidden,
 * and it can be resumed. The end of the root makes the entries of the invocation visible, even if the code reported
 * no session changes. If the root was stopped before it reported any, for example before it started, the runtime
 * adds a text that says so, and removes input that the agent would have checked.
 */
export function sessionChangesAtEnd(
  task: TaskState,
  outcome: TaskOutcome,
  { sessions }: TaskReport,
  state: RunState,
  { at, agent }: { readonly at: number; readonly agent: HostedAgent | undefined },
): readonly SessionChange[] {
  const { record } = task;
  const { retention, sessionId, runId } = record.supervision;
  const isHidden = outcome.status === "failed" && outcomeStatus(outcome) === "failed";
  if (isHidden || retention === HistoryRetention.NONE) return [];
  if (record.taskId !== root) return sessions ?? none;
  // The end of the run removes these entries again, and a resumed run does not need them.
  if (retention === HistoryRetention.RUN) return [];
  if (state.sessionsOf(root).length === 0) return sessions ?? none;
  const reveal = { type: "reveal", sessionId, runId, taskId: root } as const;
  const status = outcomeStatus(outcome);
  if (sessions !== undefined || status === "completed") return [reveal, ...(sessions ?? none)];
  // Messages before the input are not checked. They stay, because a resumed run needs them.
  if (agent?.checksInput === true && agent.historyOf?.(record.input) === undefined)
    return [{ type: "remove", sessionId, runId, taskId: root }];
  return [reveal, interruptedEntry(task, status, at)];
}

const none: readonly never[] = [];

/** S1: returns the text with which a stopped invocation ends, if its code could not write it. */
function interruptedEntry(
  { record, resumed }: TaskState,
  status: InterruptedStatus,
  at: number,
): SessionChange {
  const { agentId, taskId, supervision } = record;
  const { sessionId, runId } = supervision;
  const id = `${stoppedStem(`${runId}/${taskId}`, resumed)}/1`;
  const message = interruptedMessage(status);
  const entry = { type: "message", id, parentId: null, at, runId, taskId, message } as const;
  return { type: "append", sessionId, agentId, entry, visibility: "visible", atLeaf: true };
}

/** Returns the runs that the end of a root submits. A failed task submits none, because it can be resumed. */
export function nextRunsAtEnd(outcome: TaskOutcome, { next = [] }: TaskReport): readonly NextRun[] {
  return outcome.status === "failed" && outcomeStatus(outcome) === "failed" ? [] : next;
}

/** Returns the change that ends a task. Empty lists are not written to the journal. */
export function endChange(
  taskId: TaskId,
  {
    outcome,
    endedOn,
    next,
  }: {
    readonly outcome: TaskOutcome;
    readonly endedOn: readonly StepAddress[];
    readonly next: readonly NextRun[];
  },
): TaskChange {
  return {
    type: "end",
    taskId,
    outcome,
    ...(endedOn.length > 0 && { endedOn }),
    ...(next.length > 0 && { next }),
  };
}

/**
 * Trap R14: returns what retention erases in the commit that ends the run, whatever its outcome. `undefined` if
 * nothing is erased.
 */
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
