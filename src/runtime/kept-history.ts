import {
  formatTaskId,
  HistoryRetention,
  type SessionChange,
  type TaskOutcome,
  type TaskReport,
} from "../kernel/index.ts";
import type { RunState, TaskState } from "./run-state.ts";
import { statusOf } from "./task-end.ts";

const root = formatTaskId(0);

/**
 * S1: what a task's end leaves in its session. Nothing if it failed: then it stays as it is, hidden and resumable. What the user said
 * becomes visible with the root's end, whether or not its code came to report anything.
 */
export function closingChanges(
  { record }: TaskState,
  outcome: TaskOutcome,
  { sessions = [] }: TaskReport,
  state: RunState,
): readonly SessionChange[] {
  const { retention, sessionId, runId } = record.supervision;
  if (statusOf(outcome) === "failed" || retention === HistoryRetention.NONE) return [];
  if (record.taskId !== root) return sessions;
  // It would go with the run's end, and may be resumed without it.
  if (retention === HistoryRetention.RUN) return [];
  if (!state.wrote.has(root)) return sessions;
  return [...sessions, { type: "reveal", sessionId, runId, taskId: root } as SessionChange];
}

/** R14: what goes from sessions when the run ends, however it ended. In the commit that says so. */
export function forgottenChanges(state: RunState): readonly SessionChange[] {
  return [...state.wrote].flatMap((taskId) => {
    const { retention, sessionId, runId } = state.task(taskId).record.supervision;
    return retention === HistoryRetention.PERMANENT
      ? []
      : [{ type: "remove", sessionId, runId, taskId } as SessionChange];
  });
}
