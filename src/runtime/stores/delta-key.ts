import type { Delta, Event } from "../../kernel/index.ts";

/**
 * Returns the key of the message or tool call to which a delta belongs: the current message of a task, or one tool
 * call.
 */
export function keyOfDelta(delta: Delta): string {
  return delta.type === "tool_execution_update" ? `${delta.taskId} ${delta.callId}` : delta.taskId;
}

/**
 * E2: returns the key of the message or tool call that an event records completely. Its deltas are no longer needed.
 */
export function keyOfEvent({ type, taskId, data }: Event): string | undefined {
  if (type === "message_end") return taskId;
  return type === "tool_execution_end" ? `${taskId} ${data.callId}` : undefined;
}
