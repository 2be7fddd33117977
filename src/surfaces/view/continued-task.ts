import type { Event, EventType } from "../../kernel/index.ts";

/** Types of events of a task that is working. After its end, a task has such events only if it continues. */
const working: ReadonlySet<EventType> = new Set<EventType>([
  "task_start",
  "agent_start",
  "turn_start",
  "message_start",
  "tool_execution_start",
  "approval_request",
  "task_suspend",
  "seat_grant",
]);

/**
 * Whether an event shows that an ended task continues, because it was resumed or topped up. The tasks above it then
 * also continue, although they have no separate event before the task ends again.
 */
export function continuesTask(event: Event): boolean {
  if (!working.has(event.type)) return false;
  return event.type !== "seat_grant" || event.data.taskId === event.taskId;
}

/**
 * Whether a fork repeats the model call that was in progress at the cut in the changed task. The repeated call then
 * has its own start event.
 */
export function startsCallAgain({ input, instructions, tools }: Event<"run_fork">["data"]): boolean {
  return input !== undefined || instructions !== undefined || tools !== undefined;
}
