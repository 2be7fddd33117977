import { checkOptions, optionNames, type ChatMessage, charsOfAll } from "../../../kernel/index.ts";
import { groupHistory, type MessageGroup } from "../../context/compaction/message-group.ts";
import { recentGroups } from "../../context/compaction/recent-groups.ts";
import type { Layer } from "./layer.ts";
import { atLeast } from "../../base/option-range.ts";

/** Options of `historyTruncator`. */
export interface HistoryTruncatorOptions {
  /** Maximum number of messages, not counting the leading system messages and a summary after them. */
  readonly maxMessages?: number;
  /** Maximum number of characters, not counting those messages. A token has about four characters. */
  readonly maxChars?: number;
}

const knownOptions = optionNames<HistoryTruncatorOptions>({ maxMessages: true, maxChars: true });

/**
 * Sends the model only the newest part of a long conversation. Leading system messages, a summary and the user's last
 * message stay, a call stays with its results, and the sent part begins with a user message. Stored messages are not
 * changed.
 */
export function historyTruncator(options: HistoryTruncatorOptions): Layer {
  checkOptions("historyTruncator()", options, knownOptions);
  const { maxMessages, maxChars } = options;
  if (maxMessages === undefined && maxChars === undefined) return { name: "history-truncator" };
  const most = atLeast("historyTruncator.maxMessages", maxMessages ?? Infinity, 1);
  const room = atLeast("historyTruncator.maxChars", maxChars ?? Infinity, 1);
  return {
    name: "history-truncator",
    chat: async (context, next) => {
      const { request } = context;
      const messages = newest(request.messages, most, room);
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
