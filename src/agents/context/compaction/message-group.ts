import { isSummary, toolCallsOf, type ChatMessage } from "../../../kernel/index.ts";

/** Messages that are kept or dropped together. */
export type MessageGroup<Item = ChatMessage> = readonly Item[];

/** A history, divided into the parts that strategies treat differently. */
export interface GroupedHistory {
  /** The leading system messages and the summary after them. They are never dropped. */
  readonly head: readonly ChatMessage[];
  readonly groups: readonly MessageGroup[];
}

export function groupHistory(history: readonly ChatMessage[]): GroupedHistory {
  let start = history.findIndex(({ role }) => role !== "system");
  if (start < 0) start = history.length;
  const next = history[start];
  if (next !== undefined && isSummary(next)) start++;
  return { head: history.slice(0, start), groups: groupMessages(history.slice(start), (message) => message) };
}

/**
 * S3: groups messages. An assistant message with calls and everything up to its last result form one group; every other
 * message is a group by itself. Calls and results are matched by position, because servers repeat ids.
 */
export function groupMessages<Item>(
  items: readonly Item[],
  messageOf: (item: Item) => ChatMessage,
): readonly MessageGroup<Item>[] {
  const messages = items.map(messageOf);
  const groups: MessageGroup<Item>[] = [];
  for (let start = 0; start < items.length;) {
    const end = endOfGroup(messages, start);
    groups.push(items.slice(start, end));
    start = end;
  }
  return groups;
}

export function hasCalls(group: MessageGroup): boolean {
  return group[0] !== undefined && callsTools(group[0]);
}

function endOfGroup(messages: readonly ChatMessage[], start: number): number {
  const first = messages[start];
  let end = start + 1;
  if (first === undefined || !callsTools(first)) return end;
  for (let index = end; index < messages.length; index++) {
    const role = messages[index]?.role;
    if (role === "assistant") break;
    if (role === "tool") end = index + 1;
  }
  return end;
}

function callsTools(message: ChatMessage): boolean {
  return message.role === "assistant" && toolCallsOf(message).length > 0;
}
