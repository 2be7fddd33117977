import {
  assistantMessage,
  messageText,
  type ChatMessage,
  type CompactionStrategy,
  is,
  optionTable,
  type OptionKinds,
} from "../../../kernel/index.ts";
import { groupHistory, hasCalls, type MessageGroup } from "./message-group.ts";
import { plainStrategy } from "./plain-strategy.ts";

export interface SelectiveToolCallsOptions {
  /** Number of the newest tool calls that are kept with their results. Default: 5. */
  readonly keepLast?: number;
}

const knownOptions = optionTable({
  keepLast: is.integer({ from: 1, default: 5 }),
} satisfies OptionKinds<SelectiveToolCallsOptions>);

/** Creates a strategy that drops older tool calls with their results. The text around them is kept. */
export function selectiveToolCalls(options: SelectiveToolCallsOptions = {}): CompactionStrategy {
  const { keepLast } = knownOptions.read("selectiveToolCalls()", options);
  return plainStrategy((rawHistory) => {
    const { head, groups } = groupHistory(rawHistory);
    const calling = groups.filter(hasCalls);
    if (calling.length <= keepLast) return rawHistory;
    const dropped = new Set(calling.slice(0, -keepLast));
    return [...head, ...groups.flatMap((group) => (dropped.has(group) ? withoutCalls(group) : group))];
  });
}

/**
 * Returns a group without its calls. Reasoning and the provider's ids are dropped with the calls, because providers
 * refuse one without the other.
 */
function withoutCalls(group: MessageGroup): readonly ChatMessage[] {
  return group.flatMap((message): readonly ChatMessage[] => {
    if (message.role === "tool") return [];
    if (message.role !== "assistant") return [message];
    const text = messageText(message);
    return text.trim() === "" ? [] : [assistantMessage(text)];
  });
}
