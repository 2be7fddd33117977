import { toolCallsOf, type ChatMessage } from "../../kernel/index.ts";
import { isSummary } from "./summary-message.ts";

/** Messages that stay or go together. */
export type MessageGroup<Item = ChatMessage> = readonly Item[];

/** A history in the parts that strategies treat apart. */
export interface GroupedHistory {
  /** The leading system messages, and the summary that follows them: never dropped. */
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
 * S3: an assistant message with calls and everything up to its last result is one group; every other message is one by itself. Calls
 * and results belong together by their place, not by their ids, which servers repeat.
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
