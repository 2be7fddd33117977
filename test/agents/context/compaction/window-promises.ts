import { isDeepStrictEqual } from "node:util";
import { isSummary } from "../../../../src/kernel/index.ts";
import { toolCallsOf, type ChatMessage } from "../../../../src/kernel/index.ts";

/**
 * Returns the violations of promise S3 in a window that was compacted from a history. Empty if S3 holds.
 */
export function flaws(history: readonly ChatMessage[], window: readonly ChatMessage[]): readonly string[] {
  const places = window.filter((message) => !isSummary(message)).map(placeOf);
  const newest = history.at(-1);
  const last = window.at(-1);
  return [
    ...orphans(window),
    ...(isDeepStrictEqual(leading(window), leading(history)) ? [] : ["the leading system messages differ"]),
    ...(places.every((place, index) => index === 0 || place > Number(places[index - 1]))
      ? []
      : [`the order is ${places.join()}`]),
    ...(window.filter(isSummary).length > 1 ? ["there are two summaries"] : []),
    // The newest message must survive, because the model answers it next.
    ...(newest === undefined || (last !== undefined && placeOf(last) === placeOf(newest))
      ? []
      : ["the newest message is gone"]),
  ];
}

/**
 * Returns calls without a result and results without a call, by position. Independent of the grouping code
 * under test.
 */
export function orphans(messages: readonly ChatMessage[]): readonly string[] {
  const found: string[] = [];
  let open: string[] = [];
  for (const message of messages) {
    if (message.role === "assistant") {
      found.push(...open.map((callId) => `call ${callId}`));
      open = toolCallsOf(message).map(({ callId }) => callId);
    }
    if (message.role !== "tool") continue;
    for (const { callId } of message.content) {
      const place = open.indexOf(callId);
      if (place < 0) found.push(`result ${callId}`);
      else open.splice(place, 1);
    }
  }
  return [...found, ...open.map((callId) => `call ${callId}`)];
}

export function placeOf(message: ChatMessage): number {
  return Number(/#(\d+)#/.exec(JSON.stringify(message))?.[1]);
}

function leading(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  const end = messages.findIndex(({ role }) => role !== "system");
  return messages.slice(0, end < 0 ? messages.length : end);
}
