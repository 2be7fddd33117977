import type { Event, EventType } from "../../kernel/index.ts";

/** Types of events about messages: their sender, their recipient and their content. */
export const messageTypes = ["handoff", "run_steer", "task_signal", "mail_receive", "task_end"] as const;
export type MessageEvent = Extract<Event, { readonly type: (typeof messageTypes)[number] }>;

const types: ReadonlySet<EventType> = new Set(messageTypes);

export function isMessage(event: Event): event is MessageEvent {
  if (event.type === "task_end") return event.parentId !== null && event.data.output !== undefined;
  return types.has(event.type);
}
