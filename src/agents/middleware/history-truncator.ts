import { toolCallsOf, type ChatMessage } from "../../kernel/index.ts";
import type { Layer } from "./layer.ts";
import { atLeast } from "./option-range.ts";

export interface HistoryTruncatorOptions {
  /** Messages sent, system messages not counted. */
  readonly maxMessages?: number;
  /** UTF-16 units of JSON sent, system messages not counted; about four a token. */
  readonly maxChars?: number;
}

/**
 * Sends the model the newest part of a long conversation. System messages stay, the user's last message stays, a call goes with its
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
  const talk = messages.filter(({ role }) => role !== "system");
  const measure = room === Infinity ? () => 0 : sizeOf;
  if (talk.length <= most && measure(talk) <= room) return messages;
  const units = unitsOf(talk);
  const asked = units.findLastIndex(([first]) => first?.role === "user");
  const pinned = asked === -1 ? [] : (units[asked] ?? []);
  let [count, size] = [pinned.length, measure(pinned)];
  let from = units.length;
  while (from > 0) {
    const unit = units[from - 1] ?? [];
    const added = from - 1 === asked ? [] : unit;
    // The newest stays whatever its size: without the results it asked for, a model asks again.
    const fits = count + added.length <= most && size + measure(added) <= room;
    if (from < units.length && !fits) break;
    count += added.length;
    size += measure(added);
    from--;
  }
  // A call without what led to it confuses a model, and providers refuse it as a first message.
  while (from < asked && units[from]?.[0]?.role !== "user") from++;
  const kept = from <= asked || asked === -1 ? units.slice(from) : [pinned, ...units.slice(from)];
  return [...messages.filter(({ role }) => role === "system"), ...kept.flat()];
}

/** What stays together: an assistant's calls and the results after them; any other message by itself. */
function unitsOf(messages: readonly ChatMessage[]): readonly (readonly ChatMessage[])[] {
  const units: ChatMessage[][] = [];
  let calling = false;
  for (const message of messages) {
    const last = units.at(-1);
    if (message.role === "tool" && calling && last !== undefined) last.push(message);
    else units.push([message]);
    calling =
      (message.role === "assistant" && toolCallsOf(message).length > 0) ||
      (calling && message.role === "tool");
  }
  return units;
}

const sizes = new WeakMap<ChatMessage, number>();

/** A message is measured once (F2). */
function sizeOf(messages: readonly ChatMessage[]): number {
  let total = 0;
  for (const message of messages) {
    let size = sizes.get(message);
    if (size === undefined) {
      size = JSON.stringify(message.content).length;
      sizes.set(message, size);
    }
    total += size;
  }
  return total;
}
