import { type ChatMessage, charsOfAll, is, optionTable, type OptionKinds } from "../../../kernel/index.ts";
import { groupHistory, type MessageGroup } from "../../context/compaction/message-group.ts";
import { recentGroups } from "../../context/compaction/recent-groups.ts";
import type { Layer } from "./layer.ts";

/** Options of `historyTruncator`. */
export interface HistoryTruncatorOptions {
  /** Maximum number of messages. The leading system messages and a summary after them do not count. */
  readonly maxMessages?: number;
  /**
   * Maximum number of characters. The leading system messages and a summary after them do not count. A token has
   * about four characters.
   */
  readonly maxChars?: number;
}

const knownOptions = optionTable({
  maxMessages: is.number({ from: 1, default: Infinity }),
  maxChars: is.number({ from: 1, default: Infinity }),
} satisfies OptionKinds<HistoryTruncatorOptions>);

/**
 * Creates middleware that sends the model only the newest part of a long conversation. Leading system messages, a
 * summary and the user's last message are kept, a call stays with its results, and the sent part begins with a user
 * message. Stored messages are not changed.
 */
export function historyTruncator(options: HistoryTruncatorOptions): Layer {
  const { maxMessages, maxChars } = knownOptions.read("historyTruncator()", options);
  if (maxMessages === Infinity && maxChars === Infinity) return { name: "history-truncator" };
  return {
    name: "history-truncator",
    chat: async (context, next) => {
      const { request } = context;
      const messages = newest(request.messages, maxMessages, maxChars);
      if (messages !== request.messages) context.request = { ...request, messages };
      await next();
    },
  };
}

function newest(messages: readonly ChatMessage[], most: number, room: number): readonly ChatMessage[] {
  const { head, groups } = groupHistory(messages);
  const byCount = recent(groups, most, ({ length }) => length);
  const kept = recent(byCount, room, charsOfAll);
  return kept === groups ? messages : [...head, ...kept.flat()];
}

function recent(
  groups: readonly MessageGroup[],
  limit: number,
  cost: (messages: readonly ChatMessage[]) => number,
): readonly MessageGroup[] {
  if (limit === Infinity || groups.reduce((sum, group) => sum + cost(group), 0) <= limit) return groups;
  return recentGroups(groups, limit, cost).kept;
}
