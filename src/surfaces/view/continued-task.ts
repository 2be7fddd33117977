import type { Event, EventType } from "../../kernel/index.ts";

/** Events with which a task works. An ended task has none of them unless it continues. */
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
 * Whether an event of a task that has ended says that the task continues, because it was resumed or topped up. The tasks
 * above it then continue as well, although they have no event of their own before the task ends.
 */
export function continuesTask(event: Event): boolean {
  if (!working.has(event.type)) return false;
  return event.type !== "seat_grant" || event.data.taskId === event.taskId;
}

/** Whether a fork starts the model call again that the changed task has in progress at the cut, with an event of its own. */
export function startsCallAgain({ input, instructions, tools }: Event<"run_fork">["data"]): boolean {
  return input !== undefined || instructions !== undefined || tools !== undefined;
}
