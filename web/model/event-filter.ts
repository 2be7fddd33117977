import type { Event, EventType, TaskId } from "../../src/kernel/index.ts";

/** Which events of a log are wanted. If a field is absent, it does not restrict them. */
export interface EventFilter {
  readonly taskId?: TaskId;
  readonly types?: readonly EventType[];
}

export function fits({ taskId, type }: Event, filter: EventFilter): boolean {
  const { taskId: wanted = taskId, types } = filter;
  return taskId === wanted && (types === undefined || types.includes(type));
}
