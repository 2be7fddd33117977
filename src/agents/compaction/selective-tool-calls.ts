import {
  assistantMessage,
  messageText,
  type ChatMessage,
  type CompactionStrategy,
} from "../../kernel/index.ts";
import { requireLimit } from "./limit.ts";
import { groupHistory, hasCalls, type MessageGroup } from "./message-group.ts";
import { plainStrategy } from "./plain-strategy.ts";

export interface SelectiveToolCallsOptions {
  /** How many of the newest calls are kept, each with its results. 5 unless told. */
  readonly keepLast?: number;
}

/** Drops older calls together with their results. What was said around them stays. */
export function selectiveToolCalls({ keepLast = 5 }: SelectiveToolCallsOptions = {}): CompactionStrategy {
  requireLimit("keepLast", keepLast, 1);
  return plainStrategy((rawHistory) => {
    const { head, groups } = groupHistory(rawHistory);
    const calling = groups.filter(hasCalls);
    if (calling.length <= keepLast) return rawHistory;
    const dropped = new Set(calling.slice(0, -keepLast));
    return [...head, ...groups.flatMap((group) => (dropped.has(group) ? withoutCalls(group) : group))];
  });
}

/** Reasoning goes with its calls: providers refuse one without the other. So do their ids for what is left. */
function withoutCalls(group: MessageGroup): readonly ChatMessage[] {
  return group.flatMap((message): readonly ChatMessage[] => {
    if (message.role === "tool") return [];
    if (message.role !== "assistant") return [message];
    const text = messageText(message);
    return text.trim() === "" ? [] : [assistantMessage(text)];
  });
}
