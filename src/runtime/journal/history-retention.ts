import {
  rootTaskId as root,
  HistoryRetention,
  outcomeStatus,
  type Erasure,
  type SessionChange,
  type TaskOutcome,
  type TaskReport,
} from "../../kernel/index.ts";
import type { Addition } from "./run-log.ts";
import type { RunState, TaskState } from "./run-state.ts";

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
