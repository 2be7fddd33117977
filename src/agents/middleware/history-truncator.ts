import type { ChatMessage } from "../../kernel/index.ts";
import { groupHistory, type MessageGroup } from "../compaction/message-group.ts";
import { charsOfAll } from "../compaction/message-size.ts";
import { recentGroups } from "../compaction/recent-groups.ts";
import type { Layer } from "./layer.ts";
import { atLeast } from "./option-range.ts";

export interface HistoryTruncatorOptions {
  /** Messages sent; the leading system messages, and a summary after them, not counted. */
  readonly maxMessages?: number;
  /** Characters sent, those not counted either; about four a token. */
  readonly maxChars?: number;
}

/**
 * Sends the model the newest part of a long conversation. What leads stays: system messages and a summary. The user's last message stays, a call goes with its
 * results, and what is sent begins with the user. What is stored is not touched.
 */
export function historyTruncator({ maxMessages, maxChars }: HistoryTruncatorOptions): Layer {
  if (maxMessages === undefined && maxChars === undefined) return { name: "history-truncator" };
  const most = atLeast("historyTruncator: maxMessages", maxMessages ?? Infinity, 1);
  const room = atLeast("historyTruncator: maxChars", maxChars ?? Infinity, 1);
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
