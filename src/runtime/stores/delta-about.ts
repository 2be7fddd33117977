import type { Delta, Event } from "../../kernel/index.ts";

/** What a delta is a part of: the message a task is getting, or one call of a tool. */
export function aboutDelta(delta: Delta): string {
  return delta.type === "tool_execution_update" ? `${delta.taskId} ${delta.callId}` : delta.taskId;
}

/** E2: what an event records the whole of, so that its deltas are no longer needed. */
export function aboutEvent({ type, taskId, data }: Event): string | undefined {
  if (type === "message_end") return taskId;
  return type === "tool_execution_end" ? `${taskId} ${data.callId}` : undefined;
}
